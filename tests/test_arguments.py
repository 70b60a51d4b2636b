"""An argument that a function does not have: the error names the function and what was meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import viewfold
from viewfold import FCMVC, ViewFold, as_view, as_views, inspect_views, plot
from viewfold._util.file import ReadKeywords
from viewfold.web import report

A = np.random.default_rng(0).normal(size=(20, 3))
READERS = (
    as_view,
    as_views,
    inspect_views,
    *(getattr(ViewFold, name) for name in ("fit", "partial_fit", "fit_predict", "fit_transform")),
)


def methods(estimator: type) -> list[str]:
    """The public methods that viewfold defines: those of scikit-learn say what it says."""
    found = inspect.getmembers(estimator, inspect.isfunction)
    ours = [n for n, f in found if inspect.unwrap(f).__module__.startswith("viewfold")]
    return [name for name in ours if not name.startswith("_")]


FUNCTIONS = [
    *(getattr(viewfold, name) for name in viewfold.__all__),
    *(getattr(plot, name) for name in plot.__all__),
    *(getattr(report, name) for name in report.__all__),
]


@pytest.mark.parametrize("estimator", [ViewFold, FCMVC])
@pytest.mark.parametrize("method", methods(ViewFold))
def test_every_method_names_itself_and_its_class(estimator: type, method: str) -> None:
    said = rf"^{estimator.__name__}\.{method}\(\) has no argument 'no_such'\. (It takes|Did you)"
    with pytest.raises(TypeError, match=said):
        getattr(estimator(2), method)(A, no_such=1)


@pytest.mark.parametrize("function", [one for one in FUNCTIONS if inspect.isfunction(one)])
def test_every_function_names_itself(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=rf"^{function.__name__}\(\) has no argument 'no_such'\."):
        function(no_such=1)


@pytest.mark.parametrize("estimator", [ViewFold, FCMVC])
def test_an_estimator_names_the_parameter_that_was_meant(estimator: type) -> None:
    said = rf"^{estimator.__name__}\(\) has no argument 'n_cluster'\. Did you mean 'n_clusters'"
    with pytest.raises(TypeError, match=said):
        estimator(n_cluster=2)
    assert estimator(n_clusters=2).n_clusters == 2


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: m.fit(A, sample_weight=A[:, 0]), "ViewFold.fit() has no argument 'sample_w"),
        (lambda m: m.fit(A, colums=["a"]), "Did you mean 'columns'?"),
        (lambda m: m.partial_fit(A, veiw="labs"), "Did you mean 'view'?"),
        (lambda m: m.fit(A).predict(A, min_confidance=0.5), "Did you mean 'min_confidence'?"),
        (lambda m: m.fit(A).extend(A, idz=range(20, 40)), "Did you mean 'ids'?"),
        (lambda m: as_view(A, empty_row="keep"), "as_view() has no argument 'empty_row'. Did you"),
        (lambda m: viewfold.load("a.vf", engin=None), "load() has no argument 'engin'. Did you me"),
        (lambda m: viewfold.edit("a.vf", news=m), "edit() has no argument 'news'. Did you mean"),
    ],
)
def test_a_near_miss_is_named_and_nothing_changes(call: Callable[[Any], Any], said: str) -> None:
    model = ViewFold(2)
    with pytest.raises(TypeError) as error:
        call(model)
    assert said in str(error.value)
    assert "ReadOptions" not in str(error.value)


@pytest.mark.parametrize("function", READERS, ids=lambda function: function.__qualname__)
def test_options_of_reading_are_in_every_signature(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    assert not any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    defaults = {name: parameters[name].default for name in get_type_hints(ReadKeywords)}
    assert defaults == {
        "as_is": False,
        "empty_rows": "absent",
        "missing_cells": "accept",
        "columns": None,
        "drop": (),
        "categories": (),
        "batch": None,
        "empty_markers": None,
        "strict": False,
        "layer": None,
        "use_rep": None,
    }


def test_arguments_that_there_are_reach_the_reader(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,x,y\n" + "\n".join(f"p{i},{i},{i * i}" for i in range(20)))
    model = ViewFold(2).fit(tmp_path / "a.csv", ids="id", drop="y")
    assert model.views_[0].features == ("x",)


@pytest.mark.parametrize(
    "call",
    [
        lambda: as_view(np.vstack([np.zeros((8, 12)), np.full((52, 12), 2.0)])),
        lambda: ViewFold(2, random_state=0).fit_predict(np.vstack([A, np.full(3, np.nan)])),
        lambda: (
            ViewFold(2, random_state=0, n_components=1)
            .fit(A)
            .set_params(n_components=3)
            .recluster(3)
        ),
    ],
)
def test_a_warning_points_to_the_line_of_the_user(call: Callable[[], Any]) -> None:
    with pytest.warns(UserWarning, match="rows|columns") as said:
        call()
    assert said[0].filename == __file__
