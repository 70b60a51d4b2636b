"""Answers of commands are about what was asked: counts, options that contradict, files of ids."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_cli import run  # noqa: F401

import viewfold
from commands import Run
from viewfold import ViewFold


@pytest.fixture
def state(tmp_path: Path) -> Path:
    X = np.random.default_rng(0).normal(size=(40, 3))
    ViewFold(2, random_state=0).partial_fit(X, ids=np.arange(40), view="labs").save(
        tmp_path / "n.vf"
    )
    return tmp_path / "n.vf"


def test_one_sample_written_in_two_ways_is_forgotten_once(run: Run, state: Path) -> None:  # noqa: F811
    code, _, err = run("forget n.vf 3 03")
    assert code == 0
    assert "1 sample is forgotten; 39 are left." in err
    assert viewfold.load(state).log_["n_forgotten"].iloc[-1] == 1
    assert "2 samples are forgotten" in run("forget n.vf 4 5 4")[2]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252"]
)
def test_a_file_of_ids_is_read_in_any_encoding(
    run: Run,  # noqa: F811
    tmp_path: Path,
    encoding: str,
) -> None:
    ids = ["Zoë", "p1", *(f"q{i}" for i in range(30))]
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(32, 3)), ids)
    ViewFold(2, random_state=0).partial_fit(X, view="labs").save(tmp_path / "t.vf")
    (tmp_path / "gone.txt").write_bytes("Zoë\r\n\r\np1\r\n".encode(encoding))
    code, _, err = run("forget t.vf --from gone.txt")
    assert code == 0, err
    assert "2 samples are forgotten; 30 are left." in err


def test_a_file_of_ids_that_is_none_is_refused(run: Run, state: Path, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "gone.txt").write_bytes(b"\x00\xff\x81\x00\x01" * 20)
    code, _, err = run("forget n.vf --from gone.txt")
    assert code
    assert "gone.txt is not text that can be read. Save it as UTF-8, one id per line." in err
    (tmp_path / "gone.txt").write_bytes(b"\xff\xfe\x00")  # half a letter of UTF-16
    assert run("forget n.vf --from gone.txt")[2] == err
    assert "--encoding" not in err  # forget has no such option
    code, _, err = run("forget n.vf --from nosuch.txt")
    assert code
    assert "nosuch.txt" in err
    assert "defect" not in err


@pytest.mark.parametrize(
    ("options", "both"),
    [
        ("--id nobody --events", "--id and --events"),
        ("--id 3 --moved labs", "--id and --moved"),
        ("--moved labs --events", "--moved and --events"),
    ],
)
def test_history_ignores_no_option(run: Run, state: Path, options: str, both: str) -> None:  # noqa: F811
    code, out, err = run(f"history n.vf {options}")
    assert code
    assert not out
    assert f"{both} ask for different tables. Choose one." in err


@pytest.mark.parametrize("option", ["--id patient", "--key mine", "--overwrite"])
def test_export_of_a_table_ignores_no_option(run: Run, state: Path, option: str) -> None:  # noqa: F811
    code, _, err = run(f"export n.vf -o out.csv {option}")
    assert code
    assert "are about a copy of an AnnData" in err
    assert not (state.parent / "out.csv").exists()


def test_a_range_that_is_reversed_is_called_so(run: Run, state: Path) -> None:  # noqa: F811
    code, _, err = run("suggest n.vf --range 5-2")
    assert code
    assert "--range '5-2' is reversed: give the smaller number first, 2-5." in err
    assert "--range holds 1, but needs" in run("suggest n.vf --range 1-3")[2]
    assert "--range goes up to 40, but there are 40 samples" in run("suggest n.vf --range 2-40")[2]
    assert run("suggest n.vf --range 3-3")[0] == 0
    assert run("suggest n.vf --range 2-4")[0] == 0


def test_diff_takes_addresses_as_other_commands_do(run: Run, state: Path, tmp_path: Path) -> None:  # noqa: F811
    viewfold.convert(state, tmp_path / "n.vfd", n_buckets=6)
    for address in (f"file://{tmp_path}/n.vfd", f"file://{tmp_path}/n.vf"):
        status, diff = run(f"status {address}"), run(f"diff {address} n.vf")
        assert status[0] == diff[0], (status, diff)
        if status[0]:
            assert status[2] == diff[2]
        else:
            assert "40 samples are in both" in diff[2]


def test_the_address_of_a_file_on_this_machine_is_answered_with_its_path(
    run: Run,  # noqa: F811
    state: Path,
) -> None:
    code, _, err = run(f"status file://{state}")
    assert code == 3
    assert f"Give the path of a file on this machine, not its address: {state}" in err
    assert "a state that is not on this machine is a folder" in run("status s3://bucket/n.vf")[2]
