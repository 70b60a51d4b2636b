"""In which encoding a text is written, as its first bytes tell.

UTF-8 can be told from everything else. What is not UTF-8 is taken for Windows' Western European
one, and the user is told.
"""

from __future__ import annotations

import codecs
import io

from viewfold.data._budget import Unpacked
from viewfold.data.source import FileError

_SAMPLE = 4 * 2**20
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f"))


def encoding_of(file: str) -> str:
    """Return the encoding of a file's first bytes; refuse what is no text."""
    with Unpacked(file) as stream:
        first = io.BufferedReader(stream).read(_SAMPLE)
    for mark, name in _MARKS.items():
        if first.startswith(mark):
            return name
    even, odd = first[:1000:2], first[1:1000:2]
    for name, zeros, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if len(zeros) > 1 and zeros.count(0) > 0.7 * len(zeros) and not others.count(0):
            return name
    try:
        codecs.getincrementaldecoder("utf-8")().decode(first)  # the last letter may be cut
        return "utf-8-sig"
    except UnicodeDecodeError as error:
        if first.translate(None, _CONTROLS) == first and _is_western(first):
            return "cp1252"
        raise not_text(file, "utf-8", error) from error


def not_text(file: str, encoding: str, error: UnicodeError) -> FileError:
    """Return the error about bytes that are none of an encoding."""
    name = "UTF-8" if encoding.startswith("utf-8") else encoding
    return FileError(
        f"{file}: not text in {name} ({getattr(error, 'reason', error)}). Say how it is encoded, "
        f"for instance encoding='cp1252', or rename it if it is of another format."
    )


def _is_western(first: bytes) -> bool:
    try:
        first.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return True
