"""Long work tells how far it is, `--quiet` says nothing but errors, `--log` writes it all down."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import viewfold
from commands import Run, runner
from viewfold import cli
from viewfold._util import watch as _watch
from viewfold.cli import console as _console
from viewfold.cli.progress import Line
from viewfold.rows import LocalEngine, block_bytes


class Seen:
    """Somebody who watches: a list of (unit, total, what was done)."""

    def __init__(self) -> None:
        self.jobs: list[tuple[str, float, list[float]]] = []

    def begin(self, total: float, unit: str) -> None:
        self.jobs.append((unit, total, []))

    def done(self, part: float) -> None:
        self.jobs[-1][2].append(part)

    def of(self, unit: str) -> list[tuple[float, list[float]]]:
        return [(total, parts) for known, total, parts in self.jobs if known == unit]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run a command in a folder with a view; return its exit code, output and messages."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    ids = pd.Index([f"p{i}" for i in range(40)], name="patient")
    labs = pd.DataFrame(rng.normal(size=(40, 5)), index=ids).add_prefix("x")
    labs.assign(note=[f"words {i}" for i in range(40)]).to_csv("labs.csv")

    return runner(monkeypatch, capsys)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".jsonl"])
def test_reading_tells_how_much_of_the_file_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"labs{suffix}"
    n = 200_000 if suffix == ".parquet" else 45_000  # several blocks
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(n, 12))).add_prefix("x")
    if suffix == ".parquet":
        frame.to_parquet(path, row_group_size=5_000)
    elif suffix == ".jsonl":
        frame[:9000].to_json(path, orient="records", lines=True)
    else:
        packed = {"method": "gzip", "compresslevel": 1} if suffix.endswith("gz") else None
        frame.round(6).to_csv(path, index=False, compression=packed)
    with _watch.watching(seen := Seen()):
        viewfold.as_view(path, ids=False)
    total, parts = seen.of("bytes")[-1]
    assert total == (n * 12 if suffix == ".parquet" else path.stat().st_size)
    assert parts == sorted(parts)
    assert parts[-1] == total
    assert len(set(parts)) > 1


def test_a_fold_tells_of_every_pass_how_many_rows_are_done() -> None:
    X = np.random.default_rng(0).normal(size=(2000, 8))
    with block_bytes(16_000), _watch.watching(seen := Seen()):
        viewfold.ViewFold(3, random_state=0).partial_fit(X)
    passes = seen.of("rows")
    assert len(passes) > 3
    for total, parts in passes:
        assert parts == sorted(parts)
        assert parts[-1] == total
    assert any(total == 2000 and len(parts) >= 8 for total, parts in passes)


def test_who_watches_changes_no_result() -> None:
    X = np.random.default_rng(0).normal(size=(2000, 8))
    with block_bytes(16_000):
        alone = viewfold.ViewFold(3, random_state=0).partial_fit(X)
        with _watch.watching(Seen()):
            watched = viewfold.ViewFold(3, random_state=0).partial_fit(X)
    assert np.array_equal(alone.embedding_, watched.embedding_)


def test_an_error_in_a_pass_is_not_hidden_and_a_single_block_is_not_told() -> None:
    def fail(block: Any) -> Any:
        raise ValueError("no")

    with _watch.watching(seen := Seen()):
        with block_bytes(64), pytest.raises(ValueError, match="no"):
            LocalEngine().reduce(fail, np.ones((100, 2)))
        LocalEngine().reduce(np.sum, np.ones((10, 2)))
    assert len(seen.jobs) == 1


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_percentage_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := _Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with _console.progress("reading labs.csv") as step:
        tally = _watch.Tally(200)
        tally.reach(50)
        _refreshed()
        step("folding labs")
        LocalEngine().reduce(np.sum, np.ones((10, 2)))
        with block_bytes(64):
            parts = _watch.counted(iter("abcd"), 8, 2)
            next(parts), next(parts), next(parts)
            _refreshed()
    shown = screen.getvalue()
    assert "reading labs.csv" in shown
    assert "25%" in shown
    assert "folding labs, pass 1" in shown
    assert "50%" in shown


def _refreshed() -> None:
    line = _watch._watcher.get()
    assert isinstance(line, Line)
    line.refresh()


def test_no_terminal_shows_nothing(run: Run) -> None:
    said = run("add s.vf labs.csv --id patient --drop note --clusters 2")[2]
    assert [line.split(":")[0] for line in said.splitlines()] == [
        "labs",
        "40 samples in 2 clusters; views folded",
    ]


@pytest.mark.parametrize(
    "line", ["add s.vf {} --quiet", "--quiet add s.vf {}", "-q add s.vf {} -q"]
)
def test_quiet_says_nothing_but_errors(run: Run, line: str) -> None:
    done = run(line.format("labs.csv --id patient --clusters 2"))
    assert done == (0, "", "")
    code, out, said = run(line.format("labs.csv --id nobody"))
    assert (code, out) == (1, "")
    assert said.startswith("viewfold: labs.csv")
    assert json.loads(run("status s.vf --json --quiet")[1])["samples"] == 40
    assert run("status s.vf")[1]  # nothing is left of it for the next command


def _events(path: str = "jobs.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


@pytest.mark.parametrize("line", ["add s.vf {} --log jobs.jsonl", "--log jobs.jsonl add s.vf {}"])
def test_the_log_has_steps_notes_and_the_answer(run: Run, line: str) -> None:
    asked = line.format("labs.csv --id patient --clusters 2 --json")
    code, out, said = run(asked)
    assert code == 0
    events = _events()
    assert [event["event"] for event in events] == [
        "start", "step", "note", "step", "step", "step", "answer", "end",
    ]  # fmt: skip
    assert {event["command"] for event in events} == {"add"}
    seconds = [event["seconds"] for event in events]
    assert seconds == sorted(seconds)
    assert events[2]["message"] in said
    answer = {**json.loads(out)}
    assert answer.pop("notes") == [events[2]["message"]]
    assert answer["folds"] == events[-2]["folds"]
    assert events[-1]["exit_code"] == 0
    assert run("status s.vf --log jobs.jsonl")[0] == 0
    assert [event["command"] for event in _events()[len(events) :]] == ["status", "status"]


def test_the_log_has_errors_with_their_code(run: Run) -> None:
    code, _, said = run("add s.vf nothing.csv --clusters 2 --log jobs.jsonl")
    error = _events()[-2]
    assert (error["event"], error["code"], error["exit_code"]) == ("error", "not-found", code)
    assert error["message"] in said
    assert _events()[-1]["exit_code"] == code
    assert run("--log jobs.jsonl add --no-such-option")[0] == 2
    assert _events()[-2]["code"] == "usage"


def test_the_log_holds_no_ids_and_is_for_its_owner_only(run: Run) -> None:
    assert run("add s.vf labs.csv --id patient --clusters 2 --log jobs.jsonl")[0] == 0
    assert run("labels s.vf --log jobs.jsonl")[0] == 0
    assert run("history s.vf --id p17 --log jobs.jsonl")[0] == 0
    assert run("forget s.vf p17 --log jobs.jsonl")[0] == 0
    assert run("inspect labs.csv --state s.vf --log jobs.jsonl")[0] == 0
    assert "p17" not in Path("jobs.jsonl").read_text()
    if os.name == "posix":
        assert stat.S_IMODE(Path("jobs.jsonl").stat().st_mode) == 0o600


@pytest.mark.parametrize("file", ["labs.csv", "s.vf", "rows.jsonl"])
def test_what_is_no_log_is_never_written_to(run: Run, file: str) -> None:
    Path("rows.jsonl").write_text('{"patient": "p1", "x": 1}\n')
    assert run("add s.vf labs.csv --id patient --clusters 2")[0] == 0
    before = Path(file).read_bytes()
    code, _, said = run(f"status s.vf --log {file}")
    assert code == 1
    assert f"{file} is there, and is no log" in said
    assert Path(file).read_bytes() == before


def test_every_command_takes_both(run: Run) -> None:
    assert run("labels --help")[0] == 0
    for name in cli.app.commands:
        told = run(f"{name} --help")[1]
        assert "--quiet" in told
        assert "--log" in told


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device here")
def test_a_log_that_cannot_be_written_does_not_stop_the_work(run: Run) -> None:
    code, _, said = run("add s.vf labs.csv --id patient --clusters 2 --log /dev/full")
    assert code == 0
    assert said.count("Nothing more is logged to /dev/full") == 1


def test_passwords_of_addresses_are_not_logged(run: Run) -> None:
    assert run("inspect https://me:secret@localhost:1/labs.csv?key=hidden --log jobs.jsonl")[0] != 0
    assert "localhost" in Path("jobs.jsonl").read_text()
    assert "secret" not in Path("jobs.jsonl").read_text()
    assert "hidden" not in Path("jobs.jsonl").read_text()
