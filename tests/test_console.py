"""Tables are plain text, and lines of text and of progress do not get into each other's way."""

from __future__ import annotations

import io
import sys
from datetime import datetime
from time import monotonic, sleep
from typing import Any

import pytest

from viewfold.cli import console as _console
from viewfold.cli.progress import NUMBERS, Line


def printed(capsys: pytest.CaptureFixture[str], *rows: dict[str, Any]) -> list[str]:
    _console.print_rows(list(rows))
    return capsys.readouterr().out.splitlines()


def test_numbers_are_to_the_right_and_nothing_is_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    when = datetime(2024, 1, 2, 3, 4, 5)
    rows = [
        {"view": "labs", "samples": 1200, "weight": 0.5, "known": True, "at": when, "in": None},
        {"view": "a", "samples": None, "weight": 10.25, "known": False, "at": when, "in": [1, 2]},
    ]
    assert printed(capsys, *rows) == [
        "view  samples  weight  known  at                   in",
        "labs    1,200     0.5  yes    2024-01-02 03:04:05  –",
        "a           –   10.25  no     2024-01-02 03:04:05  1, 2",
    ]


def test_wide_signs_take_two_places_and_accents_none(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"view": name, "n": 1} for name in ("検査", "cafe\u0301", "labs")]
    assert printed(capsys, *rows) == ["view  n", "検査  1", "cafe\u0301  1", "labs  1"]


def test_text_of_users_is_printed_as_it_is_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("[bold]labs[/bold]", ":smile:", "{desc}", "x" * 200)
    assert printed(capsys, *({"view": name} for name in names)) == ["view", *names]
    assert printed(capsys, {"view": "two\nlines"}) == ["view", "two lines"]


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def looked_at(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Return a terminal that is standard error from now on."""
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    return screen


def test_what_is_said_meanwhile_has_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = looked_at(monkeypatch)
    with _console.progress("reading [b]labs{0}.csv"):
        _console.say("a note")
    _console.say("done")
    *frames, said, last = screen.getvalue().rstrip("\n").split("\n")
    assert frames == []
    assert said.split("\r")[-1] == "a note"
    assert said.split("\r")[-3] == "reading [b]labs{0}.csv 00:00"
    assert last.split("\r")[-3].startswith("reading")  # it comes back, and is wiped out
    assert last.split("\r")[-2].isspace()
    assert last.split("\r")[-1] == "done"


def test_time_goes_on_where_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = looked_at(monkeypatch)
    monkeypatch.setattr("viewfold.cli.progress.SECONDS", 0.001)
    with _console.progress("waiting"):
        end = monotonic() + 20
        while screen.getvalue().count("waiting") < 5 and monotonic() < end:
            sleep(0.001)
    assert screen.getvalue().count("waiting") >= 5


def test_a_long_name_leaves_room_for_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = looked_at(monkeypatch)
    with Line("reading " + 50 * "long/" + "\x1b\n") as line:
        line.begin(4, "bytes")
        line.done(1)
        monkeypatch.setattr(line, "dynamic_ncols", lambda _: (60, 20))
        shown = str(line)
    assert len(shown) <= 60
    assert shown.startswith(f"reading {'long/' * 50}"[: 60 - NUMBERS - 1] + "… ")
    assert " 25% 00:00 left: " in shown
    assert "\x1b" not in screen.getvalue()


def test_quiet_shows_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = looked_at(monkeypatch)
    monkeypatch.setattr(_console.voice, "quiet", True)
    with _console.progress("reading") as step:
        step("folding")
        _console.say("a note")
    assert screen.getvalue() == ""
