"""What an Arrow message takes when it is unpacked, told before Arrow takes the memory.

Arrow has no limit of its own. Its messages are FlatBuffers (Message.fbs and File.fbs in Arrow's
sources), of which these few fields are read here; `struct` checks all places against the bytes.
The file is read and not mapped: a mapped file that becomes shorter ends the process.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from typing import TypeAlias

MAGIC = b"ARROW1"
_MARK = b"\xff\xff\xff\xff"
_DICTIONARY, _BATCH = 2, 3  # kinds of message that have buffers

Read: TypeAlias = Callable[[int, int], bytes]  # so many bytes from a place


def unpacked_sizes(file: str) -> Iterator[int]:
    """Yield how many bytes each batch of a file has when it is unpacked, in either layout."""
    with open(file, "rb") as stream:
        end = os.fstat(stream.fileno()).st_size

        def read(start: int, length: int) -> bytes:
            if start < 0 or not 0 <= length <= end - start:
                raise ValueError("a message is longer than the file")
            stream.seek(start)
            found = stream.read(length)
            if len(found) < length:
                raise ValueError("the file ends within a message")
            return found

        indexed = end >= len(MAGIC) and read(0, len(MAGIC)) == MAGIC
        for said, body, length in _indexed(read, end) if indexed else _streamed(read, end):
            yield _unpacked_size(said, read, body, length)


def _indexed(read: Read, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield every message that the index at the end of a file names: text, place and length."""
    (length,) = struct.unpack("<i", read(end - 10, 4))
    index = read(end - 10 - length, length)
    top = _offset(index, 0)
    for number in (2, 3):  # Footer: version, schema, dictionaries, recordBatches
        if not _field(index, top, number):
            continue
        blocks = _table(index, top, number)
        (many,) = struct.unpack_from("<I", index, blocks)
        places = struct.iter_unpack("<qi4xq", index[blocks + 4 : blocks + 4 + 24 * many])
        for start, described, size in places:
            said = read(start, described)
            # The length comes first, and since version 0.15 a mark before it.
            yield said[8 if said[:4] == _MARK else 4 :], start + described, size


def _streamed(read: Read, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the messages of a stream, one after the other, until one of no length."""
    at = 0
    while at + 4 <= end:
        mark = read(at, 4)
        at += 4
        if mark == _MARK:
            mark = read(at, 4)
            at += 4
        (described,) = struct.unpack("<i", mark)
        if not described:
            return
        said = read(at, described)
        at += described
        size = _scalar(said, _offset(said, 0), 3, "q", 0)
        if not 0 <= size <= end - at:
            raise ValueError("a message is longer than the file")
        yield said, at, size
        at += size


def _unpacked_size(said: bytes, read: Read, body: int, length: int) -> int:
    """Return how many bytes the buffers of a message have when they are unpacked."""
    top = _offset(said, 0)
    kind = _scalar(said, top, 1, "B", 0)  # Message: version, header_type, header, bodyLength
    if kind not in (_DICTIONARY, _BATCH):
        return 0
    batch = _table(said, top, 2)
    if kind == _DICTIONARY:  # DictionaryBatch: id, data, isDelta
        batch = _table(said, batch, 1)
    # RecordBatch: length, nodes, buffers, compression
    if _field(said, batch, 3) == 0:
        return length
    buffers = _table(said, batch, 2)
    (many,) = struct.unpack_from("<I", said, buffers)
    places = struct.iter_unpack("<qq", said[buffers + 4 : buffers + 4 + 16 * many])
    total = 0
    for start, taken in places:
        if taken:  # a buffer begins with its size; −1 says that it is not packed
            (size,) = struct.unpack("<q", read(body + start, 8))
            total += taken if size < 0 else size
    return total


def _offset(said: bytes, at: int) -> int:
    """Follow the offset that is stored at a place."""
    return at + int(struct.unpack_from("<I", said, at)[0])


def _field(said: bytes, table: int, number: int) -> int:
    """Return where a field of a table is, 0 if it is not there."""
    entries = table - struct.unpack_from("<i", said, table)[0]
    (size,) = struct.unpack_from("<H", said, entries)
    if 4 + 2 * number >= size:
        return 0
    (place,) = struct.unpack_from("<H", said, entries + 4 + 2 * number)
    return table + place if place else 0


def _scalar(said: bytes, table: int, number: int, kind: str, default: int) -> int:
    at = _field(said, table, number)
    return int(struct.unpack_from(f"<{kind}", said, at)[0]) if at else default


def _table(said: bytes, table: int, number: int) -> int:
    """Return where the table or vector of a field begins."""
    at = _field(said, table, number)
    if not at:
        raise ValueError("a part of a message is missing")
    return _offset(said, at)
