"""What commands print: UTF-8 whatever the terminal thinks, since it may quote any text."""

import sys


def write_text(text: str) -> None:
    """Write to standard output at once."""
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()
