"""Bytes to text: which encoding a file is in, judged by its first part."""

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from charset_normalizer import CharsetMatches, from_bytes

from db.errors import DataError
from db.formats.encoding_names import ENCODINGS, encoding_title

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
_SHOWN_BYTES = 24
_ASCII = bytes(range(128))


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file's bytes are read as text.

    Attributes:
        name: Python's name of the encoding.
        confidence: How well it fits the file's beginning, from 0 to 1.
        runner_up: Name of the next best guess; empty where nothing had to be guessed.
        remark: What the person should check, empty if it is plain UTF-8 or their own choice.
    """

    name: str
    confidence: float = 1.0
    runner_up: str = ""
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
            return UTF8 if name == "utf-8" else Encoding(name, remark=_not_utf8(name))
    start = _first_bad_byte(head)
    if start is None and b"\x00" not in head:
        return UTF8
    if b"\x00" in head:
        return _judge_wide(head)
    return _guess(head, start or 0)


def chosen(head: bytes, name: str) -> Encoding:
    """Return the encoding that a person chose for a file that begins with `head`."""
    beyond_ascii = len(head.translate(None, _ASCII)) or 1
    unknown = codecs.getincrementaldecoder(name)("replace").decode(head).count("\ufffd")
    return Encoding(name, confidence=max(0.0, 1 - unknown / beyond_ascii))


@dataclass(slots=True)
class Decoder:
    """Decodes a stream; bytes that its encoding does not have are read as Windows-1252.

    Attributes:
        mended: Whether there were any such bytes in a file that is UTF-8 otherwise.
        misfits: Whether there were any in a file of another encoding.
    """

    encoding: Encoding
    mended: bool = False
    misfits: bool = False

    def texts(self, chunks: Iterable[bytes]) -> Iterator[str]:
        """Yield the text of the chunks, without a byte order mark."""
        decoded = self._utf8(chunks) if self.encoding.is_utf8 else self._other(chunks)
        is_first = True
        for text in decoded:
            yield text.removeprefix("\ufeff") if is_first else text
            is_first = is_first and not text

    def line(self, line: bytes) -> str:
        """Return one line as text."""
        return self._decode(line, final=True)[0]

    def _utf8(self, chunks: Iterable[bytes]) -> Iterator[str]:
        rest = b""
        for chunk in chunks:
            data = rest + chunk
            text, used = self._decode(data, final=False)
            rest = data[used:]
            yield text
        yield self._decode(rest, final=True)[0]

    def _other(self, chunks: Iterable[bytes]) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder(self.encoding.name)()
        for chunk in chain(chunks, [b""]):
            before = decoder.getstate()
            try:
                yield decoder.decode(chunk, not chunk)
            except UnicodeDecodeError:
                self.misfits = True
                decoder.setstate(before)
                decoder.errors = LENIENT
                yield decoder.decode(chunk, not chunk)

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
            return Encoding(name, confidence=zeros.count(0) / pairs, remark=_not_utf8("utf-16"))
    if _first_bad_byte(head) is None and head.count(0) < len(head) / 100:
        return UTF8  # text with a stray NUL, which becomes U+FFFD
    raise _no_text()


def _guess(head: bytes, start: int) -> Encoding:
    """Guess from what stands around the first byte that is no UTF-8."""
    begin = max(start - _GUESSED_FROM_BYTES // 4, 0)
    part = head[begin : begin + _GUESSED_FROM_BYTES]
    matches = from_bytes(part)
    best = matches.best()
    is_clear = best is not None and best.chaos <= _CERTAIN_ENOUGH and not best.bom
    if best is None or not is_clear or best.encoding in {*_WESTERN, "utf_8"}:
        name, confidence = _western(part), _fit(matches, "cp1252")
    else:
        name, confidence = codecs.lookup(best.encoding).name, 1 - best.chaos
    others = (codecs.lookup(match.encoding).name for match in matches)
    runner_up = next((o for o in others if o in ENCODINGS and o not in {name, "utf-8"}), "")
    line = head[:start].count(b"\n") + 1
    return Encoding(
        name,
        confidence=confidence,
        runner_up=runner_up,
        remark=f"{_not_utf8(name, line)}: {_around(head, start, name)!r}; check its accents and "
        "quotation marks",
    )


def _fit(matches: CharsetMatches, name: str) -> float:
    """Return how orderly the text looks in an encoding, from 0 to 1; 0.5 if nobody can say."""
    fits = (1 - match.chaos for match in matches if name in match.could_be_from_charset)
    return max(fits, default=0.5)


def _not_utf8(name: str, line: int = 0) -> str:
    place = f" (line {line})" if line else ""
    return f"the file is not UTF-8{place} and was read as {encoding_title(name)}"


def _around(head: bytes, start: int, name: str) -> str:
    """Return what stands around a byte, for a person to judge."""
    begin = max(head.rfind(b"\n", 0, start) + 1, start - _SHOWN_BYTES)
    end = head.find(b"\n", start)
    part = head[begin : min(end if end >= 0 else len(head), start + _SHOWN_BYTES)]
    return " ".join(part.decode(name, "replace").split())


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
