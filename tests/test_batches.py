"""What batches of a view differ by is removed, for all rows of them; see docs/views.md."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score as ari

import viewfold
from commands import runner
from viewfold import FCMVC, ViewFold
from viewfold.rows import DiskEngine, LocalEngine, using

N, K, SITES = 600, 4, np.array(["berlin", "oslo", "rome"])


def patients(n: int = N, *, shift: float = 3.0, together: float = 0.0, seed: int = 0):
    """Return a table of four groups from three sites that measure differently; groups; sites."""
    rng = np.random.default_rng(0)
    means, of_site = 2 * rng.normal(size=(K, 8)), shift * rng.normal(size=(3, 8))
    gain = np.exp(0.4 * rng.normal(size=(3, 8)))
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    site = np.where(rng.random(n) < together, y % 3, rng.integers(3, size=n))
    X = (means[y] + rng.normal(size=(n, 8))) * (gain[site] if shift else 1) + of_site[site]
    ids = [f"p{seed}.{i}" for i in range(n)]
    df = pd.DataFrame(X, columns=[f"m{j}" for j in range(8)], index=pd.Index(ids, name="id"))
    return df.assign(site=SITES[site]), y, site


def folded(df: pd.DataFrame, **options) -> ViewFold:
    return ViewFold(K, random_state=0).partial_fit(df, view="cells", **options)


def agreement(model: ViewFold, df: pd.DataFrame, y: np.ndarray) -> float:
    return float(ari(y, model.to_frame()["cluster"].reindex(df.index)))


def test_clusters_are_groups_and_not_sites() -> None:
    df, y, site = patients()
    plain, model = folded(df.drop(columns="site")), folded(df, batch="site")
    assert ari(site, plain.labels_) > 0.5
    assert ari(y, model.labels_) > 0.95
    note = model.log_["note"].iloc[-1]
    assert note.startswith("differences between 3 batches of 'site' removed (")
    assert note.endswith("; clusters explain 0% of the batches")


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_where_sites_measure_alike_nothing_is_lost(shift: float) -> None:
    df, y, _ = patients(shift=shift)
    assert ari(y, folded(df, batch="site").labels_) > 0.95


def test_a_site_may_be_a_number_and_a_column_with_gaps() -> None:
    df, y, site = patients()
    df["site"] = site
    df = df.mask(np.random.default_rng(1).random(df.shape) < 0.05)
    with pytest.warns(UserWarning, match="rows have no batch, and are not corrected"):
        model = folded(df, batch="site")
    there = df["site"].notna().to_numpy()
    assert ari(y[there], model.labels_[there]) > 0.85


def test_later_rows_get_the_same_correction_also_of_one_site(tmp_path: Path) -> None:
    df, _, _ = patients()
    more, y, site = patients(300, seed=1)
    fresh = folded(df, batch="site")
    fresh.save(tmp_path / "s.vf")
    for model in (fresh, viewfold.load(tmp_path / "s.vf")):
        assert ari(y, model.predict(more, view="cells")) > 0.95
        for which in range(3):  # another mean than the view has, and no drift
            one = more[site == which]
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                model.partial_fit(one, view="cells")
            assert not model.delivery_.learned
        assert agreement(model, more, y) > 0.95


def test_a_view_that_is_learned_again_keeps_its_correction() -> None:
    df, _, _ = patients(90)
    more, y, site = patients(900, seed=1)
    model = folded(df, batch="site")
    model.partial_fit(more[site == 1], view="cells")
    assert model.delivery_.learned
    model.partial_fit(more[site != 1], view="cells")
    assert agreement(model, more, y) > 0.9


def test_rows_of_another_site_are_told_and_not_corrected() -> None:
    df, _, _ = patients()
    more, _, site = patients(80, seed=1)
    model = folded(df, batch="site")
    far = more.assign(site=np.where(site == 0, "paris", more["site"]))
    with pytest.warns(UserWarning, match=r"rows are of a batch \('site'\) that is not known"):
        found = model.transform(far, view="cells")
    same = model.transform(more, view="cells")
    assert np.array_equal((found == same).all(axis=1), site != 0)
    model.refresh(pd.concat([df, far]), view="cells")  # the batch is remembered
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(far, view="cells")


@pytest.mark.parametrize(("n", "kept"), [(9, False), (10, True)])
def test_nothing_is_kept_of_a_batch_of_fewer_than_ten(n: int, kept: bool) -> None:
    df, _, site = patients()
    df = pd.concat([df[site != 2], df[site == 2][:n]])
    if kept:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = folded(df, batch="site")
    else:
        with pytest.warns(UserWarning, match=r"fewer than 10 samples .* 'rome \(9 rows\)'"):
            model = folded(df, batch="site")
    batches = model.views_[0].encoder.batches
    rome = np.array([name.startswith("m") for name in model.views_[0].features])
    differs = (batches.mean[2] != batches.centre)[rome]
    assert differs.all() if kept else not differs.any()
    assert ((batches.factor[2] != 1)[rome]).all() == kept


@pytest.mark.parametrize(("together", "warned"), [(0.0, False), (1.0, True)])
def test_there_is_a_warning_if_clusters_go_along_with_batches(
    together: float, warned: bool
) -> None:
    df, y, _ = patients(together=together)
    other = df[["m0"]].assign(**{f"n{j}": 4.0 * (y == j) for j in range(K)})
    other += np.random.default_rng(0).normal(size=other.shape)
    model = ViewFold(K, random_state=0).partial_fit(other, view="scan")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.partial_fit(df, view="cells", batch="site")
    assert any("follow the batches of view 'cells'" in str(one.message) for one in told) == warned


def test_counts_are_corrected_as_logarithms() -> None:
    rng = np.random.default_rng(0)
    y, site = rng.integers(K, size=N), rng.integers(2, size=N)
    rate = np.exp(rng.normal(size=60) + 0.8 * rng.normal(size=(K, 60)))[y]
    rate = rate * np.exp(1.2 * rng.normal(size=(2, 60)))[site]
    depth = 800 * rng.lognormal(0, 0.6, N)
    X = rng.poisson(rate / rate.sum(axis=1, keepdims=True) * depth[:, None])
    df = pd.DataFrame(X, columns=[f"g{j}" for j in range(60)]).assign(site=site)
    model = folded(df, batch="site", ids=np.arange(N))
    assert ari(y, model.labels_) > 0.9
    assert "counts: rows divided by their depth" in model.log_["note"].iloc[-1]
    assert ari(y, folded(df.drop(columns="site"), ids=np.arange(N)).labels_) < 0.6


def test_engines_agree(tmp_path: Path) -> None:
    df, _, _ = patients()
    more, _, _ = patients(100, seed=1)
    df = df.mask((np.random.default_rng(1).random(df.shape) < 0.02) & (df.columns != "site"))
    found = []
    for engine in (LocalEngine(), DiskEngine(3, str(tmp_path / "disk"))):
        with using(engine):
            model = ViewFold(K, random_state=0, encoder="linear", n_init=2)
            model.partial_fit(df, view="cells", batch="site").partial_fit(more, view="cells")
        found.append(model.to_frame()["cluster"].sort_index())
    assert ari(*found) > 0.99


def test_it_works_with_dask(tmp_path: Path) -> None:
    dd = pytest.importorskip("dask.dataframe")
    df, y, _ = patients()
    table = dd.from_pandas(df, npartitions=3)
    assert agreement(folded(table, batch="site"), df, y) > 0.95


def test_commands_take_it(tmp_path: Path, monkeypatch, capsys) -> None:
    df, y, _ = patients()
    more, of_more, site = patients(100, seed=1)
    df.to_csv(tmp_path / "cells.csv")
    more.assign(site=np.where(site == 0, "paris", more["site"])).to_csv(tmp_path / "more.csv")
    run, state = runner(monkeypatch, capsys), tmp_path / "s.vf"
    code, _, said = run(
        f"add {state} {tmp_path / 'cells.csv'} --clusters 4 --id id --batch site --seed 0"
    )
    assert code == 0
    assert "differences between 3 batches of 'site' removed" in " ".join(said.split())
    assert agreement(viewfold.load(state), df, y) > 0.95
    code, _, said = run(f"add {state} {tmp_path / 'more.csv'} --view cells --id id")
    assert code == 0
    assert "of a batch ('site') that is not known" in " ".join(said.split())
    known = site != 0
    assert agreement(viewfold.load(state), more[known], of_more[known]) > 0.95
    code, _, said = run(f"refresh {state} {tmp_path / 'more.csv'} --view cells --id id")
    assert code == 0
    assert "batches of 'site' removed" in viewfold.load(state).log_["note"].iloc[-1]


def test_an_exported_encoder_corrects_too(tmp_path: Path) -> None:
    df, _, _ = patients()
    more, y, _ = patients(100, seed=1)
    folded(df, batch="site").export_encoder(tmp_path / "cells.vfe")
    encoder = viewfold.load_encoder(tmp_path / "cells.vfe")
    assert ari(y, encoder.predict(more, view="cells")) > 0.95


def test_what_has_no_batches_refuses_them() -> None:
    df, _, _ = patients()
    with pytest.raises(ValueError, match="there is no column 'sites', which batch=… names"):
        folded(df, batch="sites")
    with pytest.raises(ValueError, match=r"is not a table: it has no columns that .*batch=… could"):
        folded(df[["m0", "m1"]].to_numpy(), batch="site")
    with pytest.raises(TypeError, match="takes the name of a column"):
        folded(df, batch=df["site"])
    with pytest.raises(ValueError, match="FCMVC knows no batch="):
        FCMVC(K).partial_fit(df, view="cells", batch="site")
    with pytest.raises(ValueError, match="not for text or sparse matrices"):
        ViewFold(K, scale="tfidf").partial_fit(df, view="cells", batch="site")
    words = pd.DataFrame.sparse.from_spmatrix(sparse.eye_array(50, 9), columns=list("abcdefghi"))
    with pytest.raises(ValueError, match="not for text or sparse matrices"):
        folded(words.assign(a=df["site"].to_numpy()[:50]), batch="a", ids=np.arange(50))


def test_several_views_name_theirs() -> None:
    df, _, _ = patients()
    views = {"one": df[["m0", "m1", "m2", "m3", "site"]], "two": df[["m4", "m5", "m6", "m7"]]}
    model = ViewFold(K, random_state=0).fit(views, batch={"one": "site"})
    assert model.views_[0].encoder.batches is not None
    assert model.views_[1].encoder.batches is None
    with pytest.raises(ValueError, match="batch=… is said of columns of one view"):
        ViewFold(K).fit(views, batch="site")
