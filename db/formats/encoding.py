"""Bytes to text: which encoding a file is in, judged by its first part."""

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from charset_normalizer import from_bytes

from db.errors import DataError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WESTERN = frozenset(
    {"cp1252", "latin_1", "iso8859_15", "cp1250", "iso8859_2", "iso8859_16", "cp1254", "cp1257",
     "cp1258", "cp850", "cp858", "cp437", "mac_roman", "mac_latin2", "mac_iceland", "hp_roman8",
     "iso8859_9", "iso8859_10", "iso8859_13", "iso8859_14", "iso8859_3", "iso8859_4", "iso8859_1",
     "cp1140", "cp500", "cp037", "cp273", "cp852", "cp775", "cp861", "cp865", "cp863", "cp860",
     "cp857", "johab", "ptcp154"}
)  # fmt: skip
"""Guesses that a few accented letters bring about just as well as Windows-1252 does."""
_GUESSED_FROM_BYTES = 32 * 2**10
_CERTAIN_ENOUGH = 0.2  # charset-normalizer's share of disorder


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file's bytes are read as text.

    Attributes:
        name: Python's name of the encoding.
        remark: What the person should check, empty if it is plain UTF-8.
    """

    name: str
    remark: str = ""

    @property
    def is_utf8(self) -> bool:
        """Whether lines can be taken as they are."""
        return self.name == "utf-8"


UTF8 = Encoding("utf-8")


def judge(head: bytes) -> Encoding:
    """Return the encoding of a file that begins with `head`.

    Raises:
        DataError: if this is no text.
    """
    for mark, name in _MARKS:
        if head.startswith(mark):
            words = name.upper()
            return (
                UTF8
                if name == "utf-8"
                else Encoding(name, f"the file was read as {words}, not UTF-8")
            )
    start = _first_bad_byte(head)
    if start is None and b"\x00" not in head:
        return UTF8
    if b"\x00" in head:
        return _judge_wide(head)
    line = head[:start].count(b"\n") + 1
    guess = _guess(head, start or 0)
    shown = "Windows-1252" if guess == "cp1252" else guess
    return Encoding(
        guess,
        f"the file is not UTF-8 (line {line}) and was read as {shown}; check its accents and "
        "quotation marks",
    )


@dataclass(slots=True)
class Decoder:
    """Decodes a stream; bytes that its encoding does not have are read as Windows-1252.

    Attributes:
        mended: Whether there were any such bytes in a file that is UTF-8 otherwise.
    """

    encoding: Encoding
    mended: bool = False

    def texts(self, chunks: Iterable[bytes]) -> Iterator[str]:
        """Yield the text of the chunks, without a byte order mark."""
        if not self.encoding.is_utf8:
            decoder = codecs.getincrementaldecoder(self.encoding.name)(errors=LENIENT)
            yield from (decoder.decode(chunk) for chunk in chunks)
            yield decoder.decode(b"", True)
            return
        rest = b""
        is_first = True
        for chunk in chunks:
            data = rest + chunk
            text, used = self._decode(data, final=False)
            rest = data[used:]
            yield text.removeprefix("\ufeff") if is_first else text
            is_first = is_first and not text
        yield self._decode(rest, final=True)[0]

    def line(self, line: bytes) -> str:
        """Return one line as text."""
        return self._decode(line, final=True)[0]

    def _decode(self, data: bytes, *, final: bool) -> tuple[str, int]:
        try:
            return codecs.utf_8_decode(data, "strict", final)
        except UnicodeDecodeError:
            self.mended = True
            return codecs.utf_8_decode(data, LENIENT, final)


def _first_bad_byte(head: bytes) -> int | None:
    """Return where `head` is no UTF-8, not counting a letter that its end cuts in two."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        return error.start
    return None


def _judge_wide(head: bytes) -> Encoding:
    """Tell UTF-16 without a mark from files that are no text: its every other byte is NUL."""
    if head.strip(b"\x00 \r\n\t") == b"":
        raise _no_text()
    pairs = len(head) // 2
    for name, zeros in (("utf-16-le", head[1::2]), ("utf-16-be", head[0::2])):
        if pairs and zeros.count(0) >= 0.4 * pairs and head.count(0) <= zeros.count(0) * 1.1:
            return Encoding(name, "the file was read as UTF-16, not UTF-8")
    if _first_bad_byte(head) is None and head.count(0) < len(head) / 100:
        return UTF8  # text with a stray NUL, which becomes U+FFFD
    raise _no_text()


def _guess(head: bytes, start: int) -> str:
    begin = max(start - _GUESSED_FROM_BYTES // 4, 0)
    part = head[begin : begin + _GUESSED_FROM_BYTES]
    best = from_bytes(part).best()
    if best is None or best.encoding in _WESTERN or best.chaos > _CERTAIN_ENOUGH:
        return _western(part)
    if best.encoding == "utf_8" or best.bom:
        return _western(part)
    return best.encoding


def _western(part: bytes) -> str:
    try:
        part.decode("cp1252")
    except UnicodeDecodeError:
        controls = sum(byte < 32 and byte not in b"\t\n\r\x0b\x0c\x1b" for byte in part)
        if controls * 50 > len(part) or (b"\n" not in part and len(part) < 16):
            raise _no_text() from None
    return "cp1252"


def _no_text() -> DataError:
    return DataError(
        "this is not a text file, or its encoding is unknown",
        where="line 1",
        remedy="Save it as UTF-8 and import it again.",
    )


def _read_leniently(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    bad = error.object[error.start : error.end]
    return bad.decode("cp1252", errors="replace"), error.end


LENIENT = "everyturn-lenient"
codecs.register_error(LENIENT, _read_leniently)
