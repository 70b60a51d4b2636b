"""docs/files.md names every format and every option, and its examples are calls that exist."""

import re
from dataclasses import fields
from pathlib import Path

import typer

from viewfold.cli import app
from viewfold.cli._reading import OPTIONS
from viewfold.io import File
from viewfold.io._registry import _BUILT_IN

PAGE = (Path(__file__).parents[1] / "docs" / "files.md").read_text(encoding="utf-8")


def test_every_format_is_on_the_page() -> None:
    suffixes = {form.suffixes[0] for form in _BUILT_IN}
    assert suffixes <= set(re.findall(r"`(\.\w+)`", PAGE))


def test_every_option_is_on_the_page_and_on_the_command_line() -> None:
    names = {field.name for field in fields(File)} - {"path"}
    assert set(OPTIONS) == names
    for command in ("add", "extend", "predict"):
        there = typer.main.get_command(app).commands[command].params
        flags = {one.opts[0] for one in there if one.name in names}
        assert len(flags) == len(names)
    table = re.findall(r"^\| `(--\w+)[^|]*\| `(\w+)=", PAGE, re.MULTILINE)
    assert {flag for flag, _ in table} == flags
    assert {name for _, name in table} == names
