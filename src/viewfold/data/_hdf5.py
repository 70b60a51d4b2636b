"""HDF5 (.mat 7.3, .h5ad, .h5mu): a look at the whole file before any library reads it.

An HDF5 file may point to other files, whose content would come back as a view, may name programs to
unpack it, and may claim any size. Only what lies in the file itself is read, within a budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

from viewfold.data._budget import Budget, free_memory
from viewfold.data.source import FileError, optional

_FILTERS = {1, 2, 3, 4, 5, 6, 32000}  # HDF5's own, and LZF, which comes with h5py
_NAMES = 10_000  # texts that are measured together


@contextmanager
def opened(file: str, extra: str) -> Iterator[Any]:
    """Open a file from which nothing leads out."""
    h5py = optional("h5py", extra, file)
    with h5py.File(file, "r") as whole:
        for node in _objects(h5py, file, whole):
            if isinstance(node, h5py.Dataset):
                _check_dataset(file, node)
        yield whole


def ask(node: Any, budget: Budget) -> None:
    """Ask for the memory that a dataset, or all there is in a group, takes when it is read."""
    import h5py

    for held in _objects(h5py, budget.file, node, follow=True):
        if not isinstance(held, h5py.Dataset):
            continue
        shape = (0,) if held.shape is None else tuple(map(int, held.shape))
        size = held.id.get_type().get_size() * prod(shape)
        budget.hold(size, f"{held.name} of shape {shape}")
        if held.dtype.hasobject and shape and size:
            _ask_for_texts(held, budget)


def _ask_for_texts(node: Any, budget: Budget) -> None:
    """Measure texts of any length: many of them may be the same one, of any size."""
    # So few at once that they fit memory, even if each is as long as the file.
    free, longest = free_memory(), node.file.id.get_filesize()
    step = _NAMES if free is None else max(1, min(_NAMES, free // (4 * longest)))
    for start in range(0, node.shape[0], step):
        block = node[start : start + step]
        fields = [block] if block.dtype.names is None else [block[n] for n in block.dtype.names]
        texts = (text for field in fields if field.dtype.hasobject for text in field.ravel())
        budget.hold(sum(map(_size, texts)), f"what {node.name} refers to")


def _size(held: Any) -> int:
    if isinstance(held, str | bytes):
        return len(held)
    return int(getattr(held, "nbytes", 0))


def _objects(h5py: Any, file: str, top: Any, follow: bool = False) -> Iterator[Any]:
    """Yield groups and datasets, each once, however often the file links to it.

    A soft link names another place in the file; it is safe to follow once all links were looked at.
    """
    seen: set[tuple[int, int]] = set()
    waiting = [top]
    while waiting:
        node = waiting.pop()
        place = h5py.h5o.get_info(node.id)
        if (place.fileno, place.addr) in seen:
            continue
        seen.add((place.fileno, place.addr))
        yield node
        if isinstance(node, h5py.Group):
            for name in list(node.id):
                kind = node.id.links.get_info(name).type
                if kind == h5py.h5l.TYPE_HARD:
                    waiting.append(node[name])
                elif kind != h5py.h5l.TYPE_SOFT:
                    raise _leads_out(file, f"{node.name}/{name.decode(errors='replace')}", "a link")
                elif follow and name in node:  # else it leads nowhere, or in a circle
                    waiting.append(node[name])


def _check_dataset(file: str, node: Any) -> None:
    how = node.id.get_create_plist()
    if how.get_external_count():
        raise _leads_out(file, node.name, "data")
    if node.is_virtual:
        raise _leads_out(file, node.name, "a virtual dataset")
    for i in range(how.get_nfilters()):
        number, _, _, name = how.get_filter(i)
        if number not in _FILTERS:
            raise FileError(
                f"{file}: {node.name} is packed with filter {number} "
                f"({name.decode(errors='replace') or 'unknown'}), which is not part of HDF5. Write "
                "the file with gzip, or unpacked."
            )


def _leads_out(file: str, name: str, what: str) -> FileError:
    return FileError(
        f"{file}: {name.replace('//', '/')} is {what} in another file. Only what lies in the file "
        "itself is read: copy the data into it."
    )
