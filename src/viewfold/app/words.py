"""Messages in the words of the command line.

The library says ``ids='patient'``, people type ``--id patient``; only this module knows both.
"""

from __future__ import annotations

import ast
import csv
import io
import re
import shlex
from collections.abc import Mapping, Sequence

# Options that are called otherwise on the command line than in Python.
FLAGS = {
    "folder": "--scratch",
    "ids": "--id",
    "limit": "--max-upload",
    "n_buckets": "--buckets",
    "n_clusters": "--clusters",
    "random_state": "--seed",
    "use_rep": "--rep",
}
# Options that have no value on the command line.
SWITCHES = {
    ("ids", False): "--no-id",
    ("keep_encoders", False): "--private",
    ("day_first", False): "--month-first",
}
OPTIONS = (
    *FLAGS,
    *("address", "as_is", "batch", "categories", "columns", "day_first", "decimal", "drop"),
    *("empty_markers", "empty_rows"),
    *("encoding", "engine", "keep", "keep_encoders", "key", "layer", "max_novelty", "memory"),
    *("metadata_columns", "metadata_id", "min_confidence", "min_shared", "missing_cells"),
    *("overwrite", "port", "raw", "rename", "sheet", "similar_ids", "since", "thousands", "top"),
    *("unconnected", "view"),
)

# Advice that is more than an option: what Python's users do, and what one types instead.
SENTENCES = {
    re.compile(rf"(?<![\w'\"]){python}"): typed
    for python, typed in {
        r"Pass one id per row instead\.": "Its rows are known by their number.",
        r"Pass a DataFrame, or choose the columns yourself\.": "Leave them out.",
        r"Pass ids= with one id per row, or a DataFrame whose index holds them\.": (
            "Name the column that holds them: --id …."
        ),
        r"Pass \{view: …\} with names out of (\[.*?\]), or one view at a time\.": (
            r"Name one with --view, out of \1."
        ),
        r"Pass view=, one of (\[.*?\]) \(name= to as_view\):": r"Say --view, one of \1:",
        r"a dict \{view: X, …\}, or view=… for each file\.": "--view … for each file.",
        r"Call fit or partial_fit\.": "Add one with viewfold add.",
        r"extend adds new samples only\. To update known samples as well, use partial_fit\.": (
            "--only-new adds new samples only. To update known samples as well, leave it out."
        ),
        r"model\.save\(…\)": "viewfold add",
        r" \(shape=\(\d+, \d+\)\)": "",
        r"k_range (goes up to|holds|is empty)": r"--range \1",
    }.items()
}
_UNDO = re.compile(r"viewfold\.undo\(('[^']*'|\"[^\"]*\"), entry=(\d+)\)")

_TEXT = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATOM = rf"(?:{_TEXT}|-?\d+(?:\.\d+)?|True|False|None)"
_DICT = rf"\{{(?:{_TEXT}): (?:{_TEXT})\}}"
_LIST = rf"\[(?:{_ATOM}(?:, {_ATOM})*)?\]|\((?:{_ATOM}(?:, {_ATOM})*,?)?\)"
# An option with its value; or else a text in quotes, such as the name of a column, which may look
# like an option and stays as it is. An apostrophe within a word begins no text.
_SAID = re.compile(
    rf"(?<![\w./\\-])(?P<name>{'|'.join(OPTIONS)})=(?P<value>…|{_ATOM}|{_LIST}|{_DICT})(?!\w|\.\w|[\[(='\"])"
    rf"|(?<!\w)(?:{_TEXT})"
)


def for_cli(message: str) -> str:
    """Return a message of the library as the command line says it."""
    for python, typed in SENTENCES.items():
        message = python.sub(typed, message)
    for path, entry in _UNDO.findall(message):
        typed = f"viewfold undo {_quoted(ast.literal_eval(path))} --entry {entry}"
        message = message.replace(f"viewfold.undo({path}, entry={entry})", typed)
    return _SAID.sub(_typed, message)


def option(name: str, value: object = ...) -> str:
    """Return an option as one types it; without a value, an ellipsis stands for it."""
    if isinstance(value, bool) and (name, value) in SWITCHES:
        return SWITCHES[name, value]
    flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
    if value is True:
        return flag
    return f"{flag} {'…' if value is ... else _quoted(value)}"


def _typed(said: re.Match[str]) -> str:
    name, value = said["name"], said["value"]
    if name is None:
        return said[0]
    return option(name, ... if value == "…" else ast.literal_eval(value))


def _quoted(value: object) -> str:
    """Return a value as one types it into a shell: names with commas between them."""
    text = str(value)
    if isinstance(value, Mapping):
        text = ",".join(f"{old}={new}" for old, new in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(value)
        text = line.getvalue()
    return f'"{text}"' if "'" in text and not set(text) & set('"$`\\!') else shlex.quote(text)


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with what it counts: ``1 sample``, ``2 samples``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
