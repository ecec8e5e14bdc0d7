"""Streamlit's command line, in a process that starts runs as forks which take their time.

`python -m tests.browser.forking_server SOCKET run app/main.py ...`: with torch loaded already, and
with a moment between passes, a run leaves the machine to the browsers that look at it.
"""

import sys
from functools import partial
from pathlib import Path

from streamlit.web.cli import main

from tests.forking import Forks
from trainer.runs import launch

if __name__ == "__main__":
    forks = Forks(socket=Path(sys.argv.pop(1)))
    launch.start_process = partial(forks.start_run, hook=("tests.faults", "slow"))
    main(prog_name="streamlit")
