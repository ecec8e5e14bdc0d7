"""Print the page about formats: python -m db.formats > docs/formats.md."""

import sys

from db.formats import FORMATS
from db.formats.documenting import page

if __name__ == "__main__":
    sys.stdout.buffer.write(page(FORMATS).encode())
