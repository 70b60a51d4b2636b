"""What an Arrow message takes when it is unpacked, told before Arrow takes the memory.

Arrow has no limit of its own. Its messages are FlatBuffers (Message.fbs and File.fbs in Arrow's
sources), of which these few fields are read here; `struct` checks all places against the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.ipc

MAGIC = b"ARROW1"
_MARK = b"\xff\xff\xff\xff"
_DICTIONARY, _BATCH = 2, 3  # kinds of message that have buffers


def unpacked_sizes(file: str) -> Iterator[int]:
    """Yield how many bytes each batch of a file has when it is unpacked, in either layout."""
    with pa.memory_map(file) as stream:
        whole = memoryview(stream.read_buffer()).cast("B")
        if whole[:6] == MAGIC:
            yield from (_unpacked_size(*parts) for parts in _indexed(whole))
            return
        stream.seek(0)
        for message in pyarrow.ipc.MessageReader.open_stream(stream):
            yield _unpacked_size(memoryview(message.metadata), memoryview(message.body or b""))


def _indexed(whole: memoryview) -> Iterator[tuple[memoryview, memoryview]]:
    """Yield description and body of every message that the index at the end of a file names."""
    (length,) = struct.unpack("<i", whole[-10:-6])
    index = whole[-10 - length : -10]
    top = _offset(index, 0)
    for number in (2, 3):  # Footer: version, schema, dictionaries, recordBatches
        if not _field(index, top, number):
            continue
        blocks = _table(index, top, number)
        (many,) = struct.unpack_from("<I", index, blocks)
        places = struct.iter_unpack("<qi4xq", index[blocks + 4 : blocks + 4 + 24 * many])
        for start, described, size in places:
            said, end = whole[start : start + described], start + described
            # The length comes first, and since version 0.15 a mark before it.
            yield said[8 if said[:4] == _MARK else 4 :], whole[end : end + size]


def _unpacked_size(said: memoryview, body: memoryview) -> int:
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
        return len(body)
    buffers = _table(said, batch, 2)
    (many,) = struct.unpack_from("<I", said, buffers)
    places = struct.iter_unpack("<qq", said[buffers + 4 : buffers + 4 + 16 * many])
    return sum(_size(body, start, length) for start, length in places if length)


def _size(body: memoryview, start: int, length: int) -> int:
    """Return the size of one buffer, which begins with it; −1 says that it is not packed."""
    (size,) = struct.unpack_from("<q", body, start)
    return length if size < 0 else int(size)


def _offset(said: memoryview, at: int) -> int:
    """Follow the offset that is stored at a place."""
    return at + int(struct.unpack_from("<I", said, at)[0])


def _field(said: memoryview, table: int, number: int) -> int:
    """Return where a field of a table is, 0 if it is not there."""
    entries = table - struct.unpack_from("<i", said, table)[0]
    (size,) = struct.unpack_from("<H", said, entries)
    if 4 + 2 * number >= size:
        return 0
    (place,) = struct.unpack_from("<H", said, entries + 4 + 2 * number)
    return table + place if place else 0


def _scalar(said: memoryview, table: int, number: int, kind: str, default: int) -> int:
    at = _field(said, table, number)
    return int(struct.unpack_from(f"<{kind}", said, at)[0]) if at else default


def _table(said: memoryview, table: int, number: int) -> int:
    """Return where the table or vector of a field begins."""
    at = _field(said, table, number)
    if not at:
        raise ValueError("a part of a message is missing")
    return _offset(said, at)
