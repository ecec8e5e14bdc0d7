"""The web process stays light: no page pulls in the training libraries."""

import subprocess
import sys

HEAVY = ("torch", "transformers", "peft")

IMPORT_EVERYTHING = f"""
import importlib, pkgutil, sys
import app
names = [m.name for m in pkgutil.walk_packages(app.__path__, "app.")]
assert "app.main" in names and "app.views.label" in names, names
for name in names:
    importlib.import_module(name)
loaded = [name for name in {HEAVY!r} if name in sys.modules]
print(len(names), "modules;", "loaded:", loaded)
sys.exit(bool(loaded))
"""


def test_no_module_of_the_app_pulls_in_torch_transformers_or_peft() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_EVERYTHING], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
