"""What every estimator of viewfold promises, checked on each of them."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Data
from every_estimator import every_estimator, folded, folded_once, same, snapshot
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from viewfold.metrics import accuracy
from viewfold.rows import block_bytes


@every_estimator
def test_folding_one_by_one_equals_fit(estimator: Any, data: Data) -> None:
    parts = data.parts()
    views, ids = ({name: part[i] for name, part in parts.items()} for i in (0, 1))
    one_by_one = snapshot(folded_once(estimator, data))
    whole = clone(estimator).fit(views, ids=ids)
    assert snapshot(whole) == one_by_one
    assert snapshot(whole.fit(views, ids=ids)) == one_by_one


@every_estimator
def test_clusters_are_found(estimator: Any, data: Data) -> None:
    model = folded_once(estimator, data)
    y = data.y[[int(i[1:]) for i in model.ids_]]
    assert model.ids_.size == 160
    assert accuracy(y, model.labels_) > 0.8


@every_estimator
def test_order_of_rows_does_not_matter(estimator: Any, data: Data) -> None:
    rng = np.random.default_rng(1)
    shuffled = {}
    for name, (X, ids) in data.parts().items():
        order = rng.permutation(len(X))
        shuffled[name] = X[order], [ids[i] for i in order]
    assert same(folded_once(estimator, data), folded(estimator, shuffled))


@every_estimator
@pytest.mark.parametrize("size", [1, 1000])
def test_block_size_does_not_matter(estimator: Any, data: Data, size: int) -> None:
    two = dict(list(data.parts().items())[:2])
    with block_bytes(size):
        model = folded(estimator, two)
    assert same(model, folded_once(estimator, data, n_views=2))


@every_estimator
def test_number_of_threads_does_not_matter(estimator: Any, data: Data) -> None:
    models = []
    for threads in (1, 3):
        with threadpool_limits(threads), block_bytes(500):
            models.append(folded(estimator, data.parts()))
    assert np.array_equal(models[0].embedding_, models[1].embedding_)
    assert same(models[0], models[1])


@every_estimator
def test_same_seed_same_answer(estimator: Any, data: Data) -> None:
    assert snapshot(folded(estimator, data.parts())) == snapshot(folded_once(estimator, data))


@every_estimator
def test_asking_changes_nothing(estimator: Any, data: Data) -> None:
    model = folded_once(estimator, data)
    before = snapshot(model)
    for view, X in data.views.items():
        assert model.predict(X, view=view).shape == (160,)
        assert model.transform(X, view=view).shape[0] == 160
    model.to_frame()
    assert snapshot(model) == before


@every_estimator
def test_inputs_are_left_as_they_are(estimator: Any, data: Data) -> None:
    parts = data.parts()
    before = pickle.dumps(parts)
    folded(estimator, parts)
    assert pickle.dumps(parts) == before


BAD = {
    "duplicate ids": (lambda X, ids: (X, [ids[0], *ids[:-1]]), "duplicate ids"),
    "-inf": (lambda X, ids: (np.where(np.eye(*X.shape) > 0, -np.inf, X), ids), "contains inf"),
    "inf": (lambda X, ids: (np.where(np.eye(*X.shape) > 0, np.inf, X), ids), "contains inf"),
    "empty": (lambda X, ids: (X[:0], []), "is empty"),
    "no features": (lambda X, ids: (X[:, :0], ids), "is empty"),
    "one dimension": (lambda X, ids: (X[0], ids), "2D array, got 1D"),
    "objects": (
        lambda X, ids: (np.where(np.eye(*X.shape) > 0, "high", X.astype(object)), ids),
        "row 0, column 0: .* found 'high'",
    ),
    "other length": (lambda X, ids: (X, ids[:-1]), "119 ids were given"),
    "no ids": (lambda X, ids: (X, None), "has no ids"),
    "float ids": (lambda X, ids: (X, np.arange(len(X)) / 2), "Ids are ints or strings"),
}


@every_estimator
@pytest.mark.parametrize("case", BAD)
def test_a_failed_fold_leaves_the_model_as_it_was(estimator: Any, data: Data, case: str) -> None:
    (_, second, _) = data.parts().items()
    model = folded_once(estimator, data, n_views=1)
    before = snapshot(model)
    break_it, message = BAD[case]
    X, ids = second[1]
    bad = break_it(X, ids)
    with pytest.raises(ValueError, match=message) as error:
        model.partial_fit(bad[0], ids=bad[1], view="scan")
    assert "'scan'" in str(error.value)
    assert snapshot(model) == before
    with pytest.raises(ValueError, match="View 'labs': X has 30 features"):
        model.partial_fit(X, ids=ids, view="labs")
    assert snapshot(model) == before


@every_estimator
def test_a_failed_fit_leaves_the_model_as_it_was(estimator: Any, data: Data) -> None:
    model = folded_once(estimator, data)
    before = snapshot(model)
    gaps = np.where(np.eye(160, 9, -3), np.nan, 1.0)
    with pytest.raises(ValueError, match="'b' contains NaN in row 3"):
        model.fit({"a": data.views["labs"], "b": gaps}, missing_cells="error")
    assert snapshot(model) == before


@every_estimator
def test_extend_adds_samples_and_moves_nobody(estimator: Any, data: Data) -> None:
    model = folded_once(estimator, data)
    frame, before = model.to_frame(), snapshot(model)
    X, labels = data.views["scan"][:3], model.predict(data.views["scan"][:3], view="scan")
    for ids, message in ((["new", "s5", "s7"], "'s5' and 1 more are known"), (None, "need ids")):
        with pytest.raises(ValueError, match=message):
            model.extend(X, ids=ids, view="scan")
        assert snapshot(model) == before
    model.extend(X, ids=["x", "y", "z"], view="scan")
    after = model.to_frame()
    pd.testing.assert_frame_equal(after.iloc[:-3], frame)
    assert np.array_equal(after.loc[["x", "y", "z"], "cluster"], labels)
    assert list(after["views_seen"].iloc[-3:]) == [1, 1, 1]
    assert model.views_[1].n_samples == 123
    model.partial_fit(data.views["labs"], ids=[f"s{i}" for i in range(160)], view="more")
    assert model.views_[-1].n_shared == 160


@every_estimator
def test_forget_removes_samples_for_good(estimator: Any, data: Data) -> None:
    model = folded_once(estimator, data)
    frame, before = model.to_frame(), snapshot(model)
    with pytest.raises(ValueError, match=r"Unknown samples: \['who'\]"):
        model.forget(["s1", "who"])
    with pytest.raises(ValueError, match=r"Nothing was forgotten\. Is 's1' meant\?"):
        model.forget(["S1 "])
    with pytest.raises(ValueError, match="all samples there are"):
        model.forget(model.ids_)
    assert snapshot(model) == before
    model.forget(["s1", "s100"])
    left, kept = model.to_frame(), frame.drop(["s1", "s100"])
    same = ["cluster", "views_seen"]
    pd.testing.assert_frame_equal(left[same], kept[same])
    # Centres are those of the samples that are left, so how near these are has changed a little.
    hangs = left["hangs_on"].fillna("") == kept["hangs_on"].fillna("")
    assert hangs.mean() > 0.95
    np.testing.assert_allclose(left["confidence"][hangs], kept["confidence"][hangs], atol=0.05)
    model.partial_fit(data.views["labs"][:50], ids=[f"s{i}" for i in range(50)], view="more")
    assert (model.views_[-1].n_new, model.views_[-1].n_shared) == (1, 49)


@every_estimator
def test_several_views_predict_together(estimator: Any, data: Data) -> None:
    model = folded_once(estimator, data)
    each = {name: model.transform(X, view=name) for name, X in data.views.items()}
    assert np.allclose(model.transform(data.views), np.mean(list(each.values()), axis=0))
    gaps = {name: X.copy() for name, X in data.views.items()}
    gaps["labs"][:10] = gaps["scan"][5:20] = np.nan
    together = model.transform(gaps)
    assert np.allclose(together[5:10], each["text"][5:10])
    assert np.allclose(together[20:], np.mean(list(each.values()), axis=0)[20:])
    frames = {n: pd.DataFrame(X, index=[f"n{i}" for i in range(160)]) for n, X in gaps.items()}
    frames = {n: frame.dropna() for n, frame in frames.items()}
    assert model.predict(frames).shape == (160,)
    gaps["text"][7] = np.nan
    with pytest.raises(ValueError, match="Row 7 is NaN in every view"):
        model.predict(gaps)
    with pytest.raises(ValueError, match="no view 'other'"):
        model.predict({"other": data.views["labs"]})


@every_estimator
def test_labels_keep_their_numbers(estimator: Any, data: Data) -> None:
    model = folded_once(estimator, data)
    before = pd.Series(model.labels_, model.ids_)
    X, ids = data.parts()["scan"]
    for seed in (1, 2, 3):  # other random starts would number the clusters otherwise
        model.set_params(random_state=seed).partial_fit(X, ids=ids, view=f"scan{seed}")
        after = pd.Series(model.labels_, model.ids_)[before.index]
        # No other numbering of the clusters would let more samples keep theirs.
        assert (after == before).mean() == accuracy(before, after)
        before = after


@every_estimator
def test_rows_of_nan_are_absent_samples(estimator: Any, data: Data) -> None:
    marked = {
        name: np.where(data.missing[:, [v]], np.nan, X)
        for v, (name, X) in enumerate(data.views.items())
    }
    kept = {
        name: (X[~data.missing[:, v]], np.flatnonzero(~data.missing[:, v]))
        for v, (name, X) in enumerate(data.views.items())
    }
    model = clone(estimator).fit(marked)
    assert np.array_equal(model.ids_, np.arange(160))  # labels stand in the order of the rows
    assert same(model, folded(estimator, kept))


@every_estimator
def test_disk_and_iterators_give_the_answer_of_memory(
    estimator: Any, data: Data, tmp_path: Path
) -> None:
    parts = data.parts()
    files, batches = {}, {}
    for name, (X, ids) in parts.items():
        np.save(tmp_path / f"{name}.npy", X)
        files[name] = tmp_path / f"{name}.npy", ids
        batches[name] = iter(np.array_split(X, 9)), ids
    memory = folded_once(estimator, data)
    with block_bytes(2000):
        assert same(folded(estimator, files), memory)
        assert same(folded(estimator, batches), memory)


@every_estimator
def test_single_precision_is_kept_and_close(estimator: Any, data: Data) -> None:
    parts = data.parts()
    single = {name: (X.astype(np.float32), ids) for name, (X, ids) in parts.items()}
    model = folded(estimator, single)
    assert model.embedding_.dtype == np.float32
    assert model.transform(single["scan"][0], view="scan").dtype == np.float32
    assert same(model, folded_once(estimator, data), atol=1e-4)


@every_estimator
def test_sparse_and_dense_views_give_the_same_answer(estimator: Any, data: Data) -> None:
    parts = {n: (np.where(np.abs(X) < 2, 0, X), ids) for n, (X, ids) in data.parts().items()}
    thin = {name: (sparse.csr_array(X), ids) for name, (X, ids) in parts.items()}
    assert same(folded(estimator, parts), folded(estimator, thin))


@every_estimator
def test_without_encoders_the_state_does_not_depend_on_the_number_of_features(
    estimator: Any, data: Data
) -> None:
    def size(times: int) -> int:
        parts = {name: (np.hstack([X] * times), ids) for name, (X, ids) in data.parts().items()}
        model = folded(clone(estimator).set_params(keep_encoders=False), parts)
        with pytest.raises(ValueError, match="keep_encoders=False"):
            model.predict(parts["labs"][0], view="labs")
        traces = sum(len(view.objective) for view in model.views_)
        return len(pickle.dumps(model._state)) - 9 * traces

    assert abs(size(8) - size(1)) < 50


@every_estimator
def test_history_and_views_seen_follow_every_sample(estimator: Any, data: Data) -> None:
    model, past = clone(estimator), {}
    for name, (X, ids) in data.parts().items():
        model.partial_fit(X, ids=ids, view=name)
        past[name] = dict(zip(model.ids_, model.labels_, strict=True))
    model.extend(data.views["labs"][:2], ids=["a", "b"], view="labs").forget(["s3", "b"])
    history, seen = model.history_, model.seen_
    assert history["text"].to_dict() == model.to_frame()["cluster"].to_dict()
    assert history.loc["a"].tolist()[:2] == [-1, -1]
    assert seen.loc["a"].tolist() == [True, False, False]
    for name in past:
        before = {i: label for i, label in past[name].items() if i != "s3"}
        known = history[name][history[name] >= 0].drop("a", errors="ignore")
        assert known.to_dict() == before
        assert set(seen.index[seen[name]]) - {"a"} == set(data.parts()[name][1]) - {"s3"}
