"""Which files a path stands for: one, a folder or pattern of tables, an address, standard input."""

from __future__ import annotations

import glob
import json
import os
import re
from pathlib import Path
from typing import Any

from viewfold._util.file import is_address, plain
from viewfold._util.messages import format_names
from viewfold._util.types import PathLike
from viewfold.data._budget import LONGEST_LINE, PACKED
from viewfold.data.fetch import STDIN, addresses, file_of, standard_input
from viewfold.data.readers import Format, find, formats, suffix_of, tables
from viewfold.data.source import FileError, natural


def name_of(path: PathLike) -> str:
    """Return what a view from this path is called.

    Examples
    --------
    >>> from viewfold.data.files import name_of
    >>> [name_of(path) for path in ("data/labs.csv.gz", "labs.v2.parquet", "labs/*.parquet")]
    ['labs', 'labs.v2', 'labs']
    >>> name_of("s3://bucket/labs.parquet"), name_of("-")
    ('labs', 'stdin')
    """
    file = os.fspath(path)
    if file == STDIN:
        return "stdin"
    given = Path(file_of(file) if is_address(file) else file)
    name = given.name
    if not os.path.exists(given) and _is_pattern(name):
        name = re.split(r"[*?[]", name)[0].rstrip("-_. ") or given.parent.name
    suffix, packed = suffix_of(name)
    return name[: len(name) - len(suffix + packed)] or name


def locate(path: PathLike) -> tuple[list[str], Format]:
    """Return the files of a path, in the order they count, and their format."""
    file = os.fspath(path)
    if file == STDIN:
        return _one(standard_input())
    if is_address(file):
        web = file.lower().startswith("http")
        pattern = not web and _is_pattern(file)
        if pattern or (not web and not suffix_of(file_of(file))[0]):
            return _elsewhere(plain(file), addresses(file))
        return _one(file)
    if os.path.isdir(file):
        return _folder(file)
    if not os.path.exists(file):
        if _is_pattern(file):
            return _parts(file, _real(glob.glob(file, recursive=True)))
        raise FileNotFoundError(f"{file}: there is no such file. Is the path right?")
    return _one(file)


def _elsewhere(whole: str, found: list[str]) -> tuple[list[str], Format]:
    """Return the files of a folder or pattern elsewhere."""
    for file in found:
        if re.fullmatch(r"matrix\.mtx(\.gz|\.zst|\.bz2)?", os.path.basename(file)):
            return _one(file)
        if os.path.basename(file) in ("state.json", "dataset_dict.json"):
            raise FileError(
                f"{whole}: a data set of Hugging Face. Copy the folder here, or name its parts "
                "with a pattern: data-*.arrow"
            )
    return _parts(whole, found)


def _is_pattern(text: str) -> bool:
    return any(mark in text for mark in "*?[")


def _one(file: str) -> tuple[list[str], Format]:
    form = find(suffix_of(file_of(file) if is_address(file) else file)[0])
    if form is None:
        raise FileError(
            f"{plain(file)}: unknown format. Expected a file name that ends in "
            f"{', '.join(formats())} (text also with .gz, .zst or .bz2)."
        )
    return [file], form


def _folder(folder: str) -> tuple[list[str], Format]:
    """Return the files of a folder: one matrix with its names, what a list names, or all tables."""
    matrix = [os.path.join(folder, f"matrix.mtx{packed}") for packed in ("", *PACKED)]
    for file in _real(matrix):
        return _one(file)
    if os.path.isfile(os.path.join(folder, "dataset_dict.json")):
        splits = _json(folder, "dataset_dict.json").get("splits")
        raise FileError(
            f"{folder}: a data set in parts ({format_names(splits or ['?'])}). Give the folder "
            "of one of them, or a pattern for all: "
            f"{os.path.join(folder, '*', 'data-*.arrow')}"
        )
    if os.path.isfile(os.path.join(folder, "state.json")):
        return _parts(folder, _listed(folder))
    return _parts(folder, _real([str(part) for part in Path(folder).rglob("*")]))


def _listed(folder: str) -> list[str]:
    """Return the files that the list of a Hugging Face data set names; others there are caches."""
    state = _json(folder, "state.json")
    if state.get("_indices_data_files"):
        raise FileError(
            f"{folder}: only some rows are chosen, or in another order. Write them as they should "
            "be: dataset.flatten_indices().save_to_disk(…)"
        )
    named = state.get("_data_files")
    names = [one.get("filename") if isinstance(one, dict) else None for one in named or []]
    for name in names:
        if not isinstance(name, str) or os.path.basename(name) != name or name in ("", ".", ".."):
            raise FileError(f"{folder}: state.json names {name!r}, which is no file of the folder.")
    files = [os.path.join(folder, str(name)) for name in names]
    gone = [file for file in files if not os.path.isfile(file)]
    if gone:
        raise FileError(f"{gone[0]}: named by state.json, but not there. Is the folder whole?")
    return files


def _json(folder: str, name: str) -> dict[str, Any]:
    file = os.path.join(folder, name)
    try:
        with open(file, "rb") as stream:
            found = json.loads(stream.read(LONGEST_LINE))
    except (ValueError, RecursionError) as error:
        raise FileError(f"{file}: not JSON ({str(error)[:100]}). Is the folder whole?") from error
    if not isinstance(found, dict):
        raise FileError(f"{file}: expected an object. Is the folder whole?")
    return found


def _real(found: list[str]) -> list[str]:
    return [file for file in found if os.path.isfile(file)]


def _parts(whole: str, found: list[str]) -> tuple[list[str], Format]:
    """Return the tables among the files of a folder or pattern: all of one format."""
    # Programs leave their own notes behind: _SUCCESS, .part-0.crc
    files = [f for f in found if os.path.basename(f)[0] not in "._"]
    kinds = tables()
    parts = sorted((f for f in files if suffix_of(f)[0] in kinds), key=natural)
    if not parts:
        raise FileError(
            f"{whole}: there is no table ({', '.join(kinds)}) here. Give the path of a file, or "
            "of a folder of tables."
        )
    mixed = sorted({suffix_of(f)[0] for f in parts})
    if len(mixed) > 1:
        raise FileError(
            f"{whole}: tables of different formats ({', '.join(mixed)}) are not one view. Choose "
            f"with a pattern, for instance *{mixed[0]}."
        )
    form = find(mixed[0])
    assert form is not None
    return parts, form
