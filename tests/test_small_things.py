"""What users see of objects, and values that look like others: equality, short texts, booleans."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from viewfold import FCMVC, Inspection, View, ViewFold, as_view, inspect_views, suggest_n_clusters
from viewfold.data.source import natural
from viewfold.data.view import Gaps
from viewfold.rows import Rows
from viewfold.state.registry import Registry
from viewfold.web.words import short

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 40)) + 4 * np.eye(40)[np.arange(120) % 3]
FRAME = pd.DataFrame(X, columns=[f"f{i}" for i in range(40)])
GAPS = FRAME.mask(RNG.random(X.shape) < 0.1)
MODEL = ViewFold(3, random_state=0).fit({"labs": FRAME, "gaps": GAPS})
SPARSE = FCMVC(3, random_state=0).fit({"labs": FRAME})

# ---- equality -----------------------------------------------------------------------------------


def test_views_and_records_are_compared_without_an_error() -> None:
    view, record = as_view(X, name="labs"), MODEL.views_[0]
    for one, other in (
        (view, as_view(X, name="labs")),
        (record, dataclasses.replace(record)),
        (record.encoder, dataclasses.replace(record.encoder)),
        (MODEL._state, dataclasses.replace(MODEL._state)),
        (MODEL._state.clusters, dataclasses.replace(MODEL._state.clusters)),
    ):
        assert one == one
        assert (one == other) in (True, False)
        assert one in [other, one]
        assert len({one, other}) in (1, 2)


ROOMS = ("state", "method", "explain", "estimators")
WORDS = ("Array", "RowSet", "Matrix", "Ids", "DataFrame", "State", "Encoder")


def holding_arrays() -> list[type]:
    """The dataclasses of the rooms whose objects users get to see that hold arrays or tables."""
    found = [View, Inspection, Rows, Gaps]
    for room in ROOMS:
        package = importlib.import_module(f"viewfold.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"viewfold.{room}."):
            held = vars(importlib.import_module(module.name)).values()
            found += [
                one for one in held if isinstance(one, type) and one.__module__ == module.name
            ]
    return [
        one
        for one in found
        if dataclasses.is_dataclass(one)
        and any(word in str(f.type) for f in dataclasses.fields(one) for word in WORDS)
        and not one.__name__.startswith("Stored")  # texts of columns, and no array
    ]


@pytest.mark.parametrize("kind", holding_arrays(), ids=lambda kind: kind.__qualname__)
def test_no_class_that_holds_arrays_compares_them(kind: type) -> None:
    assert kind.__eq__ is object.__eq__
    assert kind.__hash__ is object.__hash__


# ---- what is printed ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "held",
    [
        *(record.encoder for record in (*MODEL.views_, *SPARSE.views_)),
        *(record.moments for record in MODEL.views_),
        *MODEL.views_,
        MODEL._state,
        MODEL._state.clusters,
        as_view(FRAME, name="labs"),
        as_view(FRAME, name="labs").rows,
        as_view(GAPS, name="gaps").gaps,
        inspect_views({"labs": FRAME, "gaps": GAPS}),
        inspect_views(FRAME)[0],
    ],
    ids=lambda held: type(held).__name__,
)
def test_what_is_printed_is_short(held: Any) -> None:
    assert len(repr(held)) < 600
    assert repr(held).count("\n") == 0
    assert "array(" not in repr(held)


def test_what_is_printed_tells_names_and_shapes() -> None:
    assert repr(MODEL._state.clusters).startswith("Clusters(projection=<float")
    assert "(40,)" in repr(MODEL.views_[0].encoder)
    (labs, _) = inspect_views({"labs": FRAME, "gaps": GAPS})
    assert repr(labs).startswith("Inspection(name='labs', ")
    assert "n_rows=120" in repr(labs)


def test_an_explanation_shows_its_text() -> None:
    why = MODEL.explain(17)
    assert repr(why) == str(why)
    assert repr(why).startswith("17 is in cluster ")
    html = why._repr_html_()
    assert html.startswith("<pre>")
    assert "17 is in cluster" in html
    odd = ViewFold(2, random_state=0).fit({"<b>": FRAME}).explain(17)._repr_html_()
    assert "<b>" not in odd
    assert "&lt;b&gt;" in odd


# ---- names that are registered again ------------------------------------------------------------


def test_a_cell_of_a_notebook_may_register_its_class_again() -> None:
    methods: Registry[Any] = Registry("test.methods", {"here": "pathlib:Path"})

    def cell() -> type:
        @methods.register("Mine")
        class Mine:
            pass

        return Mine

    first, second = cell(), cell()
    assert methods["Mine"] is second is not first

    class Other:
        pass

    with pytest.raises(ValueError, match=r"There is a 'Mine' in test\.methods already"):
        methods.register("Mine")(Other)
    with pytest.raises(ValueError, match="There is a 'here'"):
        methods.register("here")(Other)


# ---- numbers ------------------------------------------------------------------------------------


def test_digits_that_are_no_decimals_are_letters() -> None:
    names = ["1²2", "part.10", "part.2", "²", "1a", "٣", "12"]
    assert sorted(names, key=natural).index("part.2") < sorted(names, key=natural).index("part.10")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (9999, "9,999"),
        (9999.4, "9,999"),
        (9999.5, "10k"),
        (9999.9, "10k"),
        (10_000, "10k"),
        (-9999.9, "-10k"),
        (999.94, "999.9"),
        (999.96, "1,000"),
        (1234.5, "1,234"),
        (999_499, "999k"),
        (999_500, "1M"),
        (999_499_999, "999M"),
        (999_500_000, "1e+09"),
        (999_999_999, "1e+09"),
        (1_000_000_000, "1e+09"),
    ],
)
def test_short_numbers_at_their_boundaries(number: float, text: str) -> None:
    assert short(number) == text


# ---- booleans that are no numbers ---------------------------------------------------------------

WHOLE: list[tuple[str, Callable[[Any], Any]]] = [
    ("n_clusters", lambda b: ViewFold(n_clusters=b).fit(X)),
    ("n_clusters", lambda b: FCMVC(n_clusters=b).partial_fit(X)),
    ("n_components", lambda b: ViewFold(2, n_components=b).fit(X)),
    ("n_init", lambda b: ViewFold(2, n_init=b).fit(X)),
    ("max_iter", lambda b: FCMVC(2, max_iter=b).fit(X)),
    ("random_state", lambda b: ViewFold(2, random_state=b).fit(X)),
    ("tol", lambda b: FCMVC(2, tol=b).fit(X)),
    ("n_clusters", lambda b: MODEL.recluster(b)),
    ("cluster", lambda b: MODEL.features(cluster=b)),
    ("top", lambda b: MODEL.features(top=b)),
    ("top", lambda b: MODEL.explain(3, top=b)),
    ("n", lambda b: MODEL.uncertain(b)),
    ("n_resamples", lambda b: MODEL.stability(b)),
    ("random_state", lambda b: MODEL.stability(2, random_state=b)),
    ("cluster", lambda b: MODEL.rename(b, "x")),
    ("k_range", lambda b: suggest_n_clusters(MODEL, [2, b])),
    ("view", lambda b: MODEL.loadings(b)),
    ("entry", lambda b: MODEL.movers(entry=b)),
    ("min_shared", lambda b: ViewFold(2).fit(X).partial_fit(X, min_shared=b)),
]


@pytest.mark.parametrize(("name", "call"), WHOLE)
@pytest.mark.parametrize("said", [True, False, np.True_])
def test_a_boolean_is_no_whole_number(name: str, call: Callable[[Any], Any], said: Any) -> None:
    before = MODEL._state
    with pytest.raises((ValueError, TypeError), match=r"(True|False)"):
        call(said)
    assert MODEL._state is before


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    model = ViewFold(np.int64(3), n_init=np.int32(2), random_state=np.int64(0)).fit(X)
    assert len(model.uncertain(np.int64(4))) == 4
    assert model.rename(np.int64(1), "x").cluster_names_ == {1: "x"}


# ---- a target that is ignored -------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fit", "partial_fit", "fit_predict", "fit_transform"])
def test_texts_that_are_all_different_are_a_target_like_any_other(method: str) -> None:
    plain = ViewFold(3, random_state=0).fit(X)
    for y in ([f"p{i}" for i in range(120)], np.array([f"p{i}" for i in range(120)], object)):
        model = ViewFold(3, random_state=0)
        with pytest.warns(UserWarning, match=r"like 'p0'\. If they are ids") as said:
            getattr(model, method)(X, y)
        if method != "fit_transform":  # scikit-learn calls that one
            assert said[0].filename == __file__
        assert np.array_equal(model.labels_, plain.labels_)
