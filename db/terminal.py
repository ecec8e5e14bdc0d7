"""What commands print: UTF-8 whatever the terminal thinks, since it may quote any text."""

import sys


def write_text(text: str) -> None:
    """Write to standard output at once."""
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def write_note(text: str) -> None:
    """Write a line to standard error at once: what people want to know and scripts do not read."""
    sys.stderr.buffer.write(f"note: {text}\n".encode())
    sys.stderr.buffer.flush()
