"""Clusters go back into AnnData and MuData: in memory, and into copies of files."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Data
from test_cli import Run, files, run, state  # noqa: F401

import viewfold
from viewfold import ViewFold

anndata = pytest.importorskip("anndata")
mudata = pytest.importorskip("mudata")

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")

NAMES = ["s3", "nobody", "s41", "s159"]


def cells(names: list[str] = NAMES) -> Any:
    made = anndata.AnnData(np.arange(3.0 * len(names)).reshape(-1, 3))
    made.obs_names = names
    made.obs["batch"] = pd.Categorical(["a"] * len(names))
    made.layers["counts"] = made.X + 1
    made.obsm["X_pca"] = made.X[:, :2]
    return made


def modalities() -> Any:
    return mudata.MuData({"rna": cells(NAMES[:3]), "adt": cells(NAMES[1:])})


@pytest.fixture(scope="module")
def model(data: Data) -> ViewFold:
    found = ViewFold(4, random_state=0)
    for name, (X, ids) in list(data.parts().items())[:2]:
        found.partial_fit(X, ids=ids, view=name)
    return found


def check(held: Any, model: ViewFold, key: str = "viewfold") -> None:
    """What is known of each sample is where it should be; of others there is nothing."""
    frame = model.to_frame()
    known = [name in frame.index for name in held.obs_names]
    assert sum(known) == 3
    names = held.obs_names[known]
    clusters = held.obs[key]
    assert isinstance(clusters.dtype, pd.CategoricalDtype)
    assert clusters.isna().tolist() == [not one for one in known]
    assert clusters[known].tolist() == frame["cluster"][names].astype(str).tolist()
    assert set(clusters.cat.categories) == set(clusters[known])
    sure = held.obs[f"{key}_confidence"]
    np.testing.assert_allclose(sure[known], frame["confidence"][names], atol=1e-6)
    assert sure[[not one for one in known]].isna().all()
    embedding = pd.DataFrame(model.embedding_, model.ids_)
    np.testing.assert_array_equal(held.obsm[f"X_{key}"][known], embedding.loc[names])
    assert np.isnan(held.obsm[f"X_{key}"][~np.array(known)]).all()


@pytest.mark.parametrize("make", [cells, modalities])
def test_annotate_writes_what_is_known_into_obs_and_obsm(make: Any, model: ViewFold) -> None:
    held = make()
    assert model.annotate(held) is None
    check(held, model)
    other = model.annotate(make(), key="fold2", copy=True)
    check(other, model, "fold2")
    untouched = make()
    model.annotate(untouched, copy=True)
    assert "viewfold" not in untouched.obs
    assert "X_viewfold" not in untouched.obsm


def check_modalities(held: Any, key: str = "viewfold") -> None:
    """Each modality has, of its own samples, what the whole has of them."""
    whole = held.obs[[key, f"{key}_confidence"]]
    embedding = pd.DataFrame(held.obsm[f"X_{key}"], held.obs_names)
    for part in held.mod.values():
        assert len(part.obs) == 3
        own = part.obs[[key, f"{key}_confidence"]]
        pd.testing.assert_frame_equal(own, whole.loc[part.obs_names])
        np.testing.assert_array_equal(part.obsm[f"X_{key}"], embedding.loc[part.obs_names])


def test_each_modality_is_annotated_for_its_own_samples(model: ViewFold) -> None:
    held = modalities()
    model.annotate(held)
    check_modalities(held)
    held.update()  # the columns of modalities are pulled, with the name of the modality before
    check(held, model)
    shuffled = mudata.MuData({"rna": cells(NAMES[2::-1]), "adt": cells(NAMES[1:])})
    shuffled.obs["person"] = [f"{name}" for name in shuffled.obs_names]
    shuffled.obs_names = [f"cell{i}" for i in range(4)]
    model.annotate(shuffled, ids="person", key="mine")
    for part in shuffled.mod.values():
        assert part.obs["mine"].notna().sum() == 2


def test_annotate_replaces_nothing_in_a_modality_either(model: ViewFold) -> None:
    held = modalities()
    held["rna"].obs["viewfold"] = 7
    with pytest.raises(ValueError, match=r"mod\['rna'\]\.obs\['viewfold'\] already"):
        model.annotate(held)
    assert "viewfold" not in held.obs
    assert "viewfold" not in held["adt"].obs
    model.annotate(held, overwrite=True)
    check_modalities(held)


def test_annotate_replaces_nothing_unasked(model: ViewFold) -> None:
    held = cells()
    held.obs["viewfold"] = "mine"
    with pytest.raises(ValueError, match=re.escape("obs['viewfold'] already. Choose another key=")):
        model.annotate(held)
    assert held.obs["viewfold"].tolist() == ["mine"] * 4
    model.annotate(held, overwrite=True)
    check(held, model)


def test_annotate_matches_ids_of_a_column_and_whole_numbers(model: ViewFold) -> None:
    held = cells(["w", "x", "y", "z"])
    with pytest.raises(ValueError, match="none of its 4 samples is known"):
        model.annotate(held)
    held.obs["donor"] = NAMES
    model.annotate(held, ids="donor")
    assert held.obs["viewfold"].isna().tolist() == [False, True, False, False]
    with pytest.raises(ValueError, match="no column 'patient' in obs"):
        model.annotate(cells(), ids="patient", overwrite=True)
    numbered = ViewFold(2, random_state=0).fit(np.random.default_rng(0).normal(size=(30, 3)))
    held = cells(["7", "8", "007", "12"])
    numbered.annotate(held)
    assert held.obs["viewfold"].isna().tolist() == [False, False, True, False]
    assert held.obs["viewfold"]["7"] == str(numbered.labels_[7])


def test_a_number_and_a_text_that_look_the_same_are_two_samples() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = ViewFold(3, random_state=0).fit(X, ids=[*range(28), "7", "08"], similar_ids="new")
    held = cells(["6", "7", "8", "08"])
    model.annotate(held)
    rows = [list(model.ids_).index(who) for who in (6, "7", 8, "08")]
    assert held.obs["viewfold"].tolist() == [str(label) for label in model.labels_[rows]]
    np.testing.assert_array_equal(held.obsm["X_viewfold"], model.embedding_[rows])


def test_annotate_takes_annotated_objects_only(model: ViewFold) -> None:
    with pytest.raises(TypeError, match="Expected an AnnData or a MuData, got a DataFrame"):
        model.annotate(pd.DataFrame({"a": [1]}))


# ---- files --------------------------------------------------------------------------------------


def written(name: str) -> Path:
    if name.endswith("d"):
        cells().write_h5ad(name)
    else:
        modalities().write(name)
    return Path(name)


@pytest.mark.parametrize("name", ["cells.h5ad", "cells.h5mu"])
def test_export_writes_a_copy_and_leaves_the_file_as_it_was(
    name: str,
    run: Run,  # noqa: F811
    state: Path,  # noqa: F811
) -> None:
    before = written(name).read_bytes()
    code, out, said = run(f"export p.vf {name} --json")
    assert code == 0, said
    copy = name.replace(".", "-viewfold.")
    expected = {"file": copy, "key": "viewfold", "known": 3, "unknown": 1, "elsewhere": 157}
    assert json.loads(out) == expected
    assert Path(name).read_bytes() == before
    read = anndata.read_h5ad if name.endswith("d") else mudata.read_h5mu
    found = read(copy)
    check(found, viewfold.load(state))
    if name.endswith("u"):
        check_modalities(found)
    code, _, said = run(f"export p.vf {name} -o other{name[5:]} --key mine")
    assert code == 0
    assert "3 samples have a cluster, 1 are not known, 157 known samples are not in" in said
    check(read(f"other{name[5:]}"), viewfold.load(state), "mine")
    # Everything else is as it was.
    one = found if name.endswith("d") else found["rna"]
    assert one.obs["batch"].tolist() == ["a"] * one.n_obs
    np.testing.assert_array_equal(one.layers["counts"], one.X + 1)


def test_export_refuses_what_it_cannot_do(run: Run, state: Path) -> None:  # noqa: F811
    before = written("cells.h5ad").read_bytes()
    anndata.AnnData(np.ones((2, 2))).write_h5ad("others.h5ad")
    assert run("export p.vf cells.h5ad")[0] == 0
    for line, message, exit_code in (
        ("cells.h5ad -o cells.h5ad", "cells.h5ad is an input", 1),
        ("cells.h5ad -o p.vf", "should end with one of .h5ad", 1),
        ("cells.h5ad -o x.csv", "should end with one of .h5ad", 1),
        ("cells-viewfold.h5ad -o x.h5ad", "obs['viewfold'] and obs['viewfold_confidence'] and", 1),
        ("others.h5ad", "none of its 2 samples is known", 1),
        ("cells.h5ad --id donor", "no column 'donor' in obs", 1),
        ("missing.h5ad", "missing.h5ad: there is no such file", 9),
        ("x.csv", "To write a table, name it with -o", 1),
        ("", "Where to? Name a table with -o", 1),
    ):
        code, _, said = run(f"export p.vf {line}")
        assert (code, message in said) == (exit_code, True), said
        assert "cannot be read" not in said
    assert Path("cells.h5ad").read_bytes() == before
    assert sorted(path.name for path in Path().glob("*.h5ad")) == [
        "cells-viewfold.h5ad",
        "cells.h5ad",
        "others.h5ad",
    ]
    code, _, said = run("export p.vf cells-viewfold.h5ad -o x.h5ad --overwrite")
    assert code == 0, said
    check(anndata.read_h5ad("x.h5ad"), viewfold.load(state))


def test_export_reads_no_matrix(run: Run, state: Path, monkeypatch: Any) -> None:  # noqa: F811
    """A file may be larger than memory: only the names of its samples are read."""
    written("cells.h5ad")
    read: list[str] = []
    own = anndata.io.read_elem
    monkeypatch.setattr(anndata.io, "read_elem", lambda at: read.append(at.name) or own(at))
    assert run("export p.vf cells.h5ad")[0] == 0
    assert read == ["/obs/_index"]


def test_a_file_that_leads_to_another_is_not_written_through(
    run: Run,  # noqa: F811
    state: Path,  # noqa: F811
) -> None:
    h5py = pytest.importorskip("h5py")
    other = written("other.h5ad")
    before = other.read_bytes()
    shutil.copy(other, "cells.h5ad")
    with h5py.File("cells.h5ad", "r+") as held:
        del held["obs"]
        held["obs"] = h5py.ExternalLink("other.h5ad", "/obs")
    code, _, said = run("export p.vf cells.h5ad")
    assert code == 1
    assert "is a link in another file" in said
    assert other.read_bytes() == before
    assert not Path("cells-viewfold.h5ad").exists()


def test_export_names_the_extra_that_it_needs(
    run: Run,  # noqa: F811
    state: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written("cells.h5ad")
    monkeypatch.setitem(sys.modules, "anndata", None)
    code, _, said = run("export p.vf cells.h5ad")
    assert code == 8
    assert "pip install 'viewfold[bio]'" in said


def test_the_table_of_export_is_as_before(run: Run, state: Path) -> None:  # noqa: F811
    code, out, _ = run("export p.vf -o all.csv --json")
    assert code == 0
    assert json.loads(out)["samples"] == 160
    assert len(pd.read_csv("all.csv")) == 160
