"""The encodings that a person can choose for a file, and what people call them."""

import codecs

from db.errors import DataError

ENCODINGS = {
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16, little-endian, without a mark",
    "utf-16-be": "UTF-16, big-endian, without a mark",
    "utf-32": "UTF-32",
    "cp1252": "Windows-1252 (Western European)",
    "iso8859-15": "ISO 8859-15 (Western European)",
    "mac-roman": "Mac Roman (Western European)",
    "cp850": "DOS 850 (Western European)",
    "cp1250": "Windows-1250 (Central European)",
    "iso8859-2": "ISO 8859-2 (Central European)",
    "cp852": "DOS 852 (Central European)",
    "cp1251": "Windows-1251 (Cyrillic)",
    "koi8-r": "KOI8-R (Russian)",
    "koi8-u": "KOI8-U (Ukrainian)",
    "iso8859-5": "ISO 8859-5 (Cyrillic)",
    "cp866": "DOS 866 (Cyrillic)",
    "cp1253": "Windows-1253 (Greek)",
    "iso8859-7": "ISO 8859-7 (Greek)",
    "cp1254": "Windows-1254 (Turkish)",
    "cp1255": "Windows-1255 (Hebrew)",
    "cp1256": "Windows-1256 (Arabic)",
    "cp1257": "Windows-1257 (Baltic)",
    "cp1258": "Windows-1258 (Vietnamese)",
    "cp874": "Windows-874 (Thai)",
    "gb18030": "GB 18030 (Chinese, simplified)",
    "big5hkscs": "Big5 (Chinese, traditional)",
    "cp932": "Shift JIS (Japanese)",
    "euc_jp": "EUC-JP (Japanese)",
    "cp949": "Windows-949 (Korean)",
}
"""By Python's own name of the codec, which `encoding_name` gives."""


def encoding_name(text: str) -> str:
    """Return the name in ENCODINGS of what somebody calls an encoding ("latin1", "SJIS" ...).

    Raises:
        DataError: if it is none of them.
    """
    try:
        name = codecs.lookup(text.strip()).name
    except (LookupError, ValueError):
        name = text
    name = _NEAREST.get(name, name)
    if name not in ENCODINGS:
        raise DataError(
            f"no encoding named {text[:40]!r} can be chosen",
            where="encoding",
            remedy=f"The encodings are: {', '.join(ENCODINGS)}.",
        )
    return name


def encoding_title(name: str) -> str:
    """Return what people call an encoding, whatever the spelling of its name."""
    own_name = codecs.lookup(name).name
    return ENCODINGS.get(own_name, own_name)


_NEAREST = {
    "ascii": "utf-8",
    "utf-8-sig": "utf-8",
    "iso8859-1": "cp1252",
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "euc_kr": "cp949",
}
"""Encodings that another one contains: files said to be in them mostly are in the larger one."""
