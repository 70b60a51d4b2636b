"""Every error is one line, or an object with --json, with the code and exit code of the docs."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from children import start

import viewfold
from viewfold import ViewFold, cli, errors, store
from viewfold.store import file

DOCS = Path(__file__).parents[1] / "docs" / "commands.md"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a state, and a table to add to it; tests take a copy."""
    folder = tmp_path_factory.mktemp("made")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 4))).add_prefix("x")
    frame.index = [f"s{i}" for i in range(30)]
    ViewFold(2, n_init=1).partial_fit(frame, view="first").save(folder / "a.vf")
    frame.rename_axis("id").to_csv(folder / "more.csv")
    return folder


@pytest.fixture
def run(
    made: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Run:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)

    def command(line: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["viewfold", *line.split()])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return command


def raiser(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


NO_ERRORS = [errors.USAGE, errors.MOVED, errors.QUARANTINED, errors.INTERRUPTED]


def documented() -> dict[str, int]:
    rows = re.findall(r"^\| (\d+) \| `([a-z-]+)` \|", DOCS.read_text(), flags=re.MULTILINE)
    return {code: int(number) for number, code in rows}


def test_the_docs_list_every_code_and_no_other() -> None:
    kinds, known = [errors.ViewfoldError], dict(NO_ERRORS)
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        known[kind.code] = kind.exit_code
    known |= {code: exit_code for _, code, exit_code in errors.BUILT_IN}
    assert known == documented()
    assert len(set(known.values())) == len(known)


CASES = {
    "bad-input": "add a.vf more.csv --id nobody",
    "usage": "add a.vf",
    "not-found": "status nobody.vf",
    "not-usable": "status more.csv",
    "damaged-file": "status damaged.vf",
    "newer-format": "status newer.vf",
    "busy": "status open.vf",
}


@pytest.mark.parametrize("code", CASES)
def test_errors_have_their_code_as_a_line_and_as_json(run: Run, code: str) -> None:
    content = Path("a.vf").read_bytes()
    Path("damaged.vf").write_bytes(content[:-5000])
    Path("open.vf").write_bytes(content)
    Path("open.vf.wal").touch()
    Path("newer.vf").write_bytes(content)
    with duckdb.connect("newer.vf") as db:
        db.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    exit_code, out, line = run(CASES[code])
    assert exit_code == documented()[code]
    assert out == ""
    assert "Traceback" not in line
    assert line.count("\n") == 1 or code == "usage"
    exit_code, out, line = run(f"{CASES[code]} --json")
    error = json.loads(out)["error"]
    assert (error["code"], error["exit_code"], exit_code) == (code, exit_code, documented()[code])
    assert error["message"]
    assert error["written"] == []
    assert line == ""
    assert Path("a.vf").read_bytes() == content


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), "out-of-memory"),
        (ModuleNotFoundError("Install viewfold[hdf5]."), "missing-extra"),
        (PermissionError(errno.EACCES, "no"), "no-permission"),
        (OSError(errno.EIO, "no"), "system"),
        (OSError(errno.ENOSPC, "full"), "no-space"),
        (OSError(errno.EDQUOT, "full"), "no-space"),
        (duckdb.IOException('Could not write file "x": No space left on device'), "no-space"),
        (duckdb.FatalException("because of: No space left on device"), "no-space"),
        (duckdb.IOException('Could not write file "x": Input/output error'), "system"),
        (RuntimeError("Query interrupted"), "interrupted"),
        (duckdb.InterruptException("INTERRUPT Error: Interrupted!"), "interrupted"),
        (KeyboardInterrupt(), "interrupted"),
        (ZeroDivisionError("a defect"), "internal"),
    ],
)
def test_what_fails_while_a_state_is_written_has_its_code(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: str
) -> None:
    content = Path("a.vf").read_bytes()
    monkeypatch.setattr(file, "_put", raiser(error))
    exit_code, out, said = run("rename a.vf 0 low --json")
    assert json.loads(out)["error"]["code"] == code
    assert exit_code == documented()[code]
    assert ("Traceback" in said) == (code == "internal")
    assert Path("a.vf").read_bytes() == content
    assert sorted(os.listdir()) == [".a.vf.lock", "a.vf", "more.csv"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (duckdb.IOException("Corrupt database file: wrong checksum in block 7"), "damaged-file"),
        (duckdb.IOException('Could not set lock on file "x": Conflicting lock is held'), "busy"),
        (OSError("Data Corruption Error: computed checksum"), "damaged-file"),
        (RuntimeError("Data Corruption Error: computed checksum"), "damaged-file"),
        (RecursionError("too deep"), "damaged-file"),
        (duckdb.OutOfMemoryException("Out of Memory Error"), "damaged-file"),
        (OSError(errno.EIO, "Input/output error"), "system"),
        (PermissionError(errno.EACCES, "Permission denied"), "no-permission"),
        (RuntimeError("Query interrupted"), "interrupted"),
    ],
)
def test_what_fails_while_a_state_is_read_has_its_code(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, kind: str
) -> None:
    monkeypatch.setattr(file, "read_catalogue", raiser(error))
    exit_code, out, _ = run("labels a.vf --json")
    assert json.loads(out)["error"]["code"] == kind
    assert exit_code == documented()[kind]


def test_damage_anywhere_in_a_large_table_is_called_damage(tmp_path: Path) -> None:
    """Rows come in batches; what is wrong with a later one is raised by Arrow, not DuckDB."""
    path = tmp_path / "a.vf"
    rows = np.random.default_rng(0).normal(size=(20_000, 3))
    ViewFold(3, n_init=1, encoder="linear", n_components=3).fit(rows).save(path)
    content = path.read_bytes()
    for at in range(12288 + 8192, len(content), 9 * 16384):
        damaged = bytearray(content)
        damaged[at] ^= 255
        path.write_bytes(damaged)
        with pytest.raises(errors.DamagedFileError, match=r"a\.vf is damaged"):
            viewfold.load(path)


def test_a_file_that_duckdb_has_open_elsewhere_is_busy(run: Run) -> None:
    script = "import duckdb, sys; db = duckdb.connect('a.vf'); print(flush=True); input()"
    other = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    other.stdout.readline()
    code, out, _ = run("status a.vf --json")
    other.communicate(b"\n")
    assert json.loads(out)["error"]["code"] == "busy"
    assert code == documented()["busy"]
    assert run("status a.vf")[0] == 0


def test_a_full_disk_is_said_so_and_leaves_everything_as_it_was(run: Run) -> None:
    if os.name == "nt":
        pytest.skip("no such limits here")
    content = Path("a.vf").read_bytes()
    script = """
        import resource, signal, sys
        from viewfold import cli
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))
        sys.argv = ["viewfold", *sys.argv[1:]]
        cli.main()
    """
    other = start(script, "add", "a.vf", "more.csv", "--id", "id", "--json")
    out, said = other.communicate()
    assert other.returncode == documented()["no-space"], said
    assert json.loads(out)["error"]["code"] == "no-space"
    assert Path("a.vf").read_bytes() == content
    assert sorted(os.listdir()) == [".a.vf.lock", "a.vf", "more.csv"]


# -- Ctrl-C


def test_ctrl_c_before_the_file_is_replaced_says_that_nothing_changed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = Path("a.vf").read_bytes()
    monkeypatch.setattr(os, "replace", raiser(KeyboardInterrupt()))
    code, out, said = run("add a.vf more.csv --id id")
    assert (code, out, said) == (130, "", "viewfold: interrupted; nothing was changed.\n")
    assert Path("a.vf").read_bytes() == content


def test_ctrl_c_after_the_file_was_replaced_says_that_it_was(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.replace

    def replace(*args: Any) -> None:
        real(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        code, _, said = run("add a.vf more.csv --id id")
    assert (code, said) == (130, "viewfold: interrupted. Written before that: a.vf.\n")
    assert len(viewfold.load("a.vf").views_) == 2
    monkeypatch.setattr("viewfold.cli.change.tell", raiser(KeyboardInterrupt()))
    code, out, _ = run("forget a.vf s1 --json")
    assert code == 130
    assert json.loads(out)["error"]["written"] == [str(Path("a.vf").resolve())]


def test_an_error_after_the_file_was_replaced_says_that_it_was(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viewfold.cli.change.tell", raiser(BrokenPipeError("nobody listens")))
    code, _, said = run("forget a.vf s1")
    assert code == documented()["system"]
    assert said.endswith("nobody listens. Written before that: a.vf.\n")


def test_a_query_that_is_interrupted_is_ctrl_c(tmp_path: Path) -> None:
    endless = "SELECT count(*) FROM range(1000000000000000) WHERE random() < 0"
    draft, target = tmp_path / "d.vf", tmp_path / "a.vf"

    def ask() -> None:
        with file.making(draft, target, "BLOCK_SIZE 16384") as db:
            threading.Timer(0.2, db.interrupt).start()
            db.execute(endless)

    with pytest.raises(KeyboardInterrupt):
        ask()


def test_ctrl_c_while_waiting_for_another_writer(run: Run) -> None:
    script = """
        import filelock
        from viewfold import cli

        def acquire(*args, **options):
            print("waits", flush=True)
            return before(*args, **options)

        before, filelock.FileLock.acquire = filelock.FileLock.acquire, acquire
        cli.main()
    """
    line = ["add", "a.vf", "more.csv", "--id", "id"]
    asked = [sys.executable, "-c", textwrap.dedent(script), *line]
    with store.writing("a.vf"):
        # A shell lets programs in the background ignore Ctrl-C, and their children inherit that.
        heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        other = subprocess.Popen(
            asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heard
        )
        assert other.stdout is not None
        assert other.stdout.readline() == "waits\n"
        other.send_signal(signal.SIGINT)
        _, said = other.communicate()
    assert other.returncode == 130
    assert said.strip() == "viewfold: interrupted; nothing was changed."
