"""Readers of a .vfd folder see one generation, a killed writer leaves the one before, and forgotten
samples are in no file."""

import io
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from children import start
from pyarrow import parquet
from vfd_models import by_sample, files_of

import viewfold
from viewfold import StateFileError
from viewfold.store.folder import Folder, manifest_numbers, read_manifest


def needed(folder: Path) -> set[str]:
    """The files that the two latest generations consist of."""
    here = manifest_numbers(Folder.at(folder))[:2]
    found = [read_manifest(Folder.at(folder), number) for number in here]
    names = {one.file for one in found[: 1 if found[0].erases else 2]}
    for manifest in found[: 1 if found[0].erases else 2]:
        for state in manifest.states:
            names |= {f"{state.folder}/{one.file}" for one in state.samples}
            names |= {f"{state.folder}/{name}.parquet" for name in state.tables}
    return names


def test_a_reader_keeps_what_it_opened_until_the_write_after_next(state_folder: Path) -> None:
    reader = viewfold.load(state_folder)
    expected = by_sample(viewfold.load(state_folder))
    for number in (4, 2):
        with viewfold.edit(state_folder, keep=0) as model:
            model.recluster(number)
        if number == 4:
            assert by_sample(reader) == expected
    with pytest.raises(StateFileError, match="load it again"):
        reader.to_frame()
    assert set(files_of(state_folder)) == needed(state_folder)


def everything_in(folder: Path) -> str:
    """What all files say, packed or not."""
    texts = []
    for name, data in files_of(folder).items():
        texts.append(data.decode("latin-1"))
        if name.endswith(".parquet"):
            texts.append(str(parquet.read_table(io.BytesIO(data)).to_pylist()))
    return "\n".join(texts)


def test_a_forgotten_sample_is_in_no_file(state_folder: Path) -> None:
    assert "patient-030" in everything_in(state_folder)
    assert viewfold.forget(state_folder, ["patient-030"]).ids_.size == 89
    assert "patient-030" not in everything_in(state_folder)
    assert "patient-031" in everything_in(state_folder)
    assert set(files_of(state_folder)) == needed(state_folder)
    assert viewfold.undo(state_folder, entry=2)._state.names == ["labs"]
    with viewfold.edit(state_folder) as model:
        model.forget(["patient-031"])
    assert "patient-031" not in everything_in(state_folder)
    with pytest.raises(ValueError, match="Unknown samples"):
        viewfold.forget(state_folder, ["patient-031"])


def test_encoders_that_are_not_kept_any_more_are_in_no_file(state_folder: Path) -> None:
    with viewfold.edit(state_folder) as model:
        model.set_params(keep_encoders=False)
    assert "encoder/1" not in everything_in(state_folder)
    assert model.ids_.size == 90  # the model reads what was written, not what is gone


def test_one_writer_waits_for_the_other(state_folder: Path) -> None:
    script = """
        import sys, viewfold
        with viewfold.edit(sys.argv[1]) as model:
            print("begun", flush=True)
            sys.stdin.readline()
            model.recluster(4)
    """
    other = start(script, state_folder)
    assert other.stdout is not None
    assert other.stdout.readline() == "begun\n"
    with pytest.raises(viewfold.errors.BusyError, match=r"s.vfd is being written by another"):
        viewfold.undo(state_folder, wait=0.1)
    other.communicate("\n")
    assert viewfold.load(state_folder).n_clusters == 4


KILLED = """
    import os, signal, sys
    import viewfold, viewfold.estimators, viewfold.method.encoders, viewfold.store.models
    from viewfold.store import buckets, folder as _folder  # before the first fork

    path, what, stride = sys.argv[1], sys.argv[2], int(sys.argv[3])

    def work():
        if what == "forget":
            viewfold.forget(path, ["patient-030"])
        else:
            with viewfold.edit(path) as model:
                model.recluster(4)

    def killed_at(step):
        for name in ("write", "create", "remove", "make", "settle"):
            own = getattr(_folder.Folder, name)
            def counted(self, *a, own=own, **k):
                killed_at.left -= 1
                if killed_at.left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return own(self, *a, **k)
            setattr(_folder.Folder, name, counted)
        killed_at.left = step

    import shutil
    for step in range(0, 100, stride):
        copy = f"{path[:-4]}-{what}-{step}.vfd"
        shutil.copytree(path, copy)
        child = os.fork()
        if not child:
            path = copy
            killed_at(step)
            work()
            os._exit(0)
        done = os.waitpid(child, 0)[1] == 0
        print(copy, "done" if done else "killed", flush=True)
        if done:
            break
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="writers are forked")
@pytest.mark.parametrize(("what", "stride"), [("recluster", 2), ("forget", 5)])
def test_a_writer_killed_at_any_step_leaves_one_generation_and_the_next_clears_up(
    what: str, stride: int, state_folder: Path
) -> None:
    said = start(KILLED, state_folder, what, stride).communicate()[0].split()
    steps = dict(zip(said[::2], said[1::2], strict=True))
    assert list(steps.values()).count("killed") > 5
    assert list(steps.values())[-1] == "done"
    before = by_sample(viewfold.load(state_folder))
    after = _without_times(by_sample(viewfold.load(list(steps)[-1])))
    seen = set()
    for place in map(Path, steps):
        found = by_sample(viewfold.load(place))
        seen.add(found == before)
        assert found == before or _without_times(found) == after
        if steps[str(place)] == "killed":
            with viewfold.edit(place, keep=3) as model:  # the next writer
                assert model is not None
        assert set(files_of(place)) == needed(place)
        if what == "forget" and found != before:
            assert "patient-030" not in everything_in(place)
        shutil.rmtree(place)
    assert seen == {True, False}


def _without_times(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "log": [(event.what, event.n_samples) for event in found["log"]]}
