# ruff: noqa: F811  (fixtures of other files)
"""What outputs promise: whole or not at all, private, and never over a state or an input."""

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from test_cli import Run, files, run, state  # noqa: F401

import viewfold
from viewfold.web import report

WRITERS = {
    "labels": "labels p.vf -o {0}",
    "export": "export p.vf -o {0}",
    "predict": "predict p.vf labs.csv --id patient --view labs -o {0}",
    "history": "history p.vf -o {0}",
    "way": "history p.vf --id s5 -o {0}",
    "moved": "history p.vf --moved scan -o {0}",
    "report": "report p.vf -o {0}",
}
every_writer = pytest.mark.parametrize("writer", WRITERS)
pytestmark = pytest.mark.usefixtures("quick_pages")


def ending(writer: str) -> str:
    return ".html" if writer == "report" else ".csv"


def contents() -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in Path().iterdir()}


@every_writer
@pytest.mark.parametrize("way", ["name", "link", "hard link", "lock", "other state", "disguised"])
def test_no_output_replaces_a_state(run: Run, state: Path, writer: str, way: str) -> None:
    out = Path(f"out{ending(writer)}")
    if way == "name":
        out = state
    elif way == "link":
        out.symlink_to(state)
    elif way == "hard link":
        os.link(state, out)
    elif way == "lock":
        out.symlink_to(".p.vf.lock")
    elif way == "other state":
        out.symlink_to("new.vf")  # which is not there yet
    else:
        viewfold.load(state).save("other.vf")
        Path("other.vf").rename(out)
    before = contents() if way != "other state" else {}
    code, printed, said = run(WRITERS[writer].format(out))
    assert code != 0
    assert printed == ""
    assert str(out) in said
    assert not Path("new.vf").exists()
    assert way == "other state" or contents() == before


@pytest.mark.parametrize("asked", ["labs.csv", "*.csv", "."])
def test_no_output_replaces_an_input(run: Run, state: Path, asked: str) -> None:
    Path("text.tsv").unlink()  # a folder should hold one view
    before = contents()
    code, _, said = run(f"predict p.vf {asked} --id patient --view labs -o labs.csv")
    assert code != 0
    assert "is an input" in said
    assert contents() == before


def test_a_format_that_is_not_made_is_refused_with_those_that_are(run: Run, state: Path) -> None:
    for writer, line in WRITERS.items():
        code, _, said = run(line.format("out.pdf"))
        assert code != 0
        assert ending(writer) in said
    with pytest.raises(ValueError, match=r"\.html"):
        report.write(viewfold.load(state), "out.pdf")
    assert not Path("out.pdf").exists()


@pytest.fixture
def _plain_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """How a page gets to its place does not depend on what is drawn in it."""
    monkeypatch.setattr(report, "render", lambda *_, **__: "<h1>A page</h1>")


@every_writer
@pytest.mark.usefixtures("_plain_page")
def test_a_failure_leaves_the_old_output_and_nothing_else(
    run: Run, state: Path, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Path(f"out{ending(writer)}")
    assert run(WRITERS[writer].format(out))[0] == 0
    out.write_text("old")  # a new one would be what the first was
    before = contents()

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for call in ("os.fsync", "os.replace"):
        with monkeypatch.context() as patch:
            patch.setattr(call, full)
            code, _, said = run(WRITERS[writer].format(out))
        assert code != 0
        assert "No space left" in said
        assert contents() == before


@every_writer
@pytest.mark.usefixtures("_plain_page")
def test_an_output_is_replaced_in_one_step_where_a_link_leads(
    run: Run, state: Path, writer: str
) -> None:
    Path("there").mkdir()
    name = f"out{ending(writer)}"
    Path("there", name).write_text("old")
    Path(name).symlink_to(Path("there", name))
    with Path(name).open() as reader:
        assert run(WRITERS[writer].format(name))[0] == 0
        assert reader.read() == "old"  # whoever reads the old one goes on with it
    assert Path(name).is_symlink()
    assert Path("there", name).stat().st_size > 10
    assert [p.name for p in Path("there").iterdir()] == [name]


def test_outputs_with_ids_are_as_private_as_the_state(run: Run, state: Path) -> None:
    for mode in (0o600, 0o640):
        state.chmod(mode)
        for writer in WRITERS.keys() - {"report"}:
            out = Path(f"{writer}-{mode}.csv")
            assert run(WRITERS[writer].format(out))[0] == 0
            assert stat.S_IMODE(out.stat().st_mode) == mode
    out.chmod(0o664)  # chosen by somebody: kept
    assert run(f"labels p.vf -o {out}")[0] == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o664


def test_the_demo_keeps_what_is_not_its_own(run: Run, state: Path) -> None:
    state.rename("demo.vf")
    content = Path("demo.vf").read_bytes()
    code, _, said = run("demo")
    assert code != 0
    assert "not the demo's" in said
    assert Path("demo.vf").read_bytes() == content


def test_mixed_ids_can_be_written_in_every_format(run: Run, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        [[i % 3, i % 5, i] for i in range(40)], index=[*range(20), *map(str, range(20))]
    )
    model = viewfold.ViewFold(3)
    model.fit(frame.to_numpy(float), ids=frame.index, similar_ids="new").save("p.vf")
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet}
    for suffix, reader in read.items():
        for command in ("labels", "export"):
            assert run(f"{command} p.vf -o {command}.{suffix}")[0] == 0
            assert reader(f"{command}.{suffix}")["id"].astype(str).tolist() == [
                str(i) for i in frame.index
            ]
