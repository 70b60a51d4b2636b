"""What is wrong with a .vfd folder is told by the name of the file, and nothing is changed."""

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from vfd_models import files_of

import viewfold
from viewfold import StateFileError, ViewFold
from viewfold.errors import DamagedFileError, NewerFormatError
from viewfold.rows import DiskEngine, using
from viewfold.store import queries
from viewfold.store.folder import Folder, Generation, _digest, current_manifest


def now(folder: Path) -> Generation:
    return current_manifest(Folder.at(folder)).states[0]


def bucket_file(folder: Path, which: int = 1) -> Path:
    one = now(folder)
    return folder / one.folder / one.samples[which].file


def manifest_file(folder: Path) -> Path:
    return folder / current_manifest(Folder.at(folder)).file


def missing(folder: Path) -> Path:
    bucket_file(folder).unlink()
    return bucket_file(folder)


def truncated(folder: Path) -> Path:
    file = bucket_file(folder)
    file.write_bytes(file.read_bytes()[:-100])
    return file


def of_another_bucket(folder: Path) -> Path:
    file = bucket_file(folder)
    file.write_bytes(bucket_file(folder, 0).read_bytes())
    return file


def changed_log(folder: Path) -> Path:
    file = folder / now(folder).folder / "log.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    return file


def changed_manifest(folder: Path) -> Path:
    file = manifest_file(folder)
    file.write_text(file.read_text().replace('"keep": 2', '"keep": 3'))
    return file


@pytest.mark.parametrize(
    "damage", [missing, truncated, of_another_bucket, changed_log, changed_manifest]
)
def test_the_file_that_is_damaged_is_named_and_nothing_else_changes(
    damage: Callable[[Path], Path], state_folder: Path
) -> None:
    name = damage(state_folder).name
    before = files_of(state_folder)
    for work in (viewfold.load, queries.everything, lambda path: viewfold.forget(path, ["x"])):
        with pytest.raises(DamagedFileError, match=name):
            work(state_folder)
    with pytest.raises(DamagedFileError, match=name), viewfold.edit(state_folder) as model:
        model.recluster(2)
    verdict = viewfold.verify(state_folder)
    assert name in verdict.problems[0]
    assert files_of(state_folder) == before


def rewritten(folder: Path, table: Callable, which: int = 1) -> None:
    """Change the rows of a bucket, and all digests with them."""
    from pyarrow import parquet

    from viewfold.store.buckets import as_array, packed
    from viewfold.store.tables import column_digests

    file = bucket_file(folder, which)
    made = table(parquet.read_table(file))
    file.write_bytes(packed(made))
    manifest = current_manifest(Folder.at(folder))
    path = folder / manifest.file
    said = json.loads(path.read_text())
    said["states"][0]["samples"][which] |= {
        "digests": column_digests({name: as_array(made, name) for name in made.column_names}),
        "rows": len(made),
    }
    said.pop("digest")
    path.write_text(json.dumps({**said, "digest": _digest(said)}))


def test_rows_that_no_fold_could_have_written_are_refused(state_folder: Path) -> None:
    import pyarrow as pa

    def with_label_99(table):
        history = table["history"].combine_chunks().flatten().to_numpy().copy().reshape(-1, 2)
        history[:, 1] = 99
        lists = pa.FixedSizeListArray.from_arrays(pa.array(history.ravel()), 2)
        table = table.set_column(table.column_names.index("history"), "history", lists)
        label = pa.array(np.full(len(table), 99, np.int32))
        return table.set_column(table.column_names.index("label"), "label", label)

    name = bucket_file(state_folder).name
    rewritten(state_folder, with_label_99)
    with pytest.raises(DamagedFileError, match=f"{name}: a label is not among its 3 clusters"):
        viewfold.load(state_folder)


def test_rows_are_never_lost_silently(state_folder: Path) -> None:
    rewritten(state_folder, lambda table: table.slice(1))
    with pytest.raises(DamagedFileError, match=r"it has 89 samples and should have 90"):
        viewfold.load(state_folder)


def test_samples_in_the_wrong_bucket_are_refused(state_folder: Path) -> None:
    import pyarrow as pa

    def renamed(table):
        other = pa.array([f"{one}-x" for one in table["id"].to_pylist()])
        return table.set_column(0, "id", other)

    rewritten(state_folder, renamed)
    with pytest.raises(DamagedFileError, match="samples of other buckets"):
        viewfold.load(state_folder)


def test_any_byte_that_is_changed_is_found_and_none_ends_the_program(state_folder: Path) -> None:
    rng = np.random.default_rng(0)
    file = bucket_file(state_folder)
    whole = file.read_bytes()
    from viewfold.store.buckets import check_bucket
    from viewfold.store.check import Expected

    bare = viewfold.load(state_folder)._state
    one = now(state_folder)
    task = partial(check_bucket, Folder.at(state_folder), one, Expected.of(bare), None)
    task(one.samples[1])
    silent = 0
    for place in rng.choice(len(whole), 60, replace=False):
        data = bytearray(whole)
        data[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(data)
        try:
            task(one.samples[1])
            silent += 1  # bytes of statistics and of names nobody reads
        except DamagedFileError:
            pass
    assert silent < 30


def test_a_newer_format_is_told(state_folder: Path) -> None:
    file = manifest_file(state_folder)
    said = json.loads(file.read_text())
    file.write_text(json.dumps({**said, "version": 5}))
    with pytest.raises(NewerFormatError, match=rf"{file.name}.*install a newer viewfold"):
        viewfold.load(state_folder)


def test_another_number_of_buckets_is_told(state_folder: Path) -> None:
    with pytest.raises(StateFileError, match="has 3 buckets and the engine has 5"):
        viewfold.load(state_folder, engine=DiskEngine(5))
    with (
        using(DiskEngine(5)),
        pytest.raises(StateFileError, match="has 3 buckets and the engine has 5"),
    ):
        viewfold.load(state_folder)


def test_ids_of_two_kinds_are_refused_and_no_folder_is_left(tmp_path: Path) -> None:
    model = ViewFold(2, n_init=2).fit(np.eye(4), ids=["a", "b", 7, "c"])
    with pytest.raises(ValueError, match="all samples need ids of one kind"):
        model.save(tmp_path / "a.vfd")
    assert not (tmp_path / "a.vfd").exists()


def test_what_is_no_folder_of_viewfold_is_told(tmp_path: Path) -> None:
    model = ViewFold(2, n_init=2).fit(np.eye(4))
    (tmp_path / "file.vfd").write_text("x")
    (tmp_path / "folder.vf").mkdir()
    (tmp_path / "other.vfd").mkdir()
    (tmp_path / "other.vfd" / "thesis.txt").write_text("x")
    for work in (viewfold.load, model.save):
        with pytest.raises(StateFileError, match=r"file.vfd is a file, not a .vfd folder"):
            work(tmp_path / "file.vfd")
        with pytest.raises(StateFileError, match=r"folder.vf is a folder, not a .vf file"):
            work(tmp_path / "folder.vf")
        with pytest.raises(StateFileError, match=r"other.vfd holds"):
            work(tmp_path / "other.vfd")
        with pytest.raises(StateFileError, match=r"foo://a.vfd: Protocol not known: foo"):
            work("foo://a.vfd")
        with pytest.raises(StateFileError, match=r"s3://b/a.vf: .* ends with .vfd"):
            work("s3://b/a.vf")
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere.vfd"):
        viewfold.load(tmp_path / "nowhere.vfd")
    assert (tmp_path / "other.vfd" / "thesis.txt").read_text() == "x"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do anything")
def test_who_may_not_write_is_told(state_folder: Path) -> None:
    state_folder.chmod(0o500)
    try:
        with pytest.raises(PermissionError), viewfold.edit(state_folder) as model:
            model.recluster(2)
    finally:
        state_folder.chmod(0o700)
