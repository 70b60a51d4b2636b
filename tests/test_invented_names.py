"""A view without a name gets one that no other view has, and is never taken for another view."""

import numpy as np
import pytest

from viewfold import View, ViewFold, as_view, as_views, inspect_views
from viewfold.rows import LocalEngine

A = np.random.default_rng(0).normal(size=(20, 3))
B = np.random.default_rng(1).normal(size=(20, 3))


def names(model: ViewFold) -> list[str]:
    return [record.name for record in model.views_]


def test_an_invented_name_is_not_one_that_a_user_chose() -> None:
    model = ViewFold(2, random_state=0).fit({"view1": A}).partial_fit(B)
    assert names(model) == ["view1", "view2"]
    assert (model.delivery_.update, model.delivery_.n_corrected) == (False, 0)
    assert names(model.partial_fit(A)) == ["view1", "view2", "view3"]


@pytest.mark.parametrize("chosen", ["view0", "view2", "view01", "View1"])
def test_other_names_leave_the_number_alone(chosen: str) -> None:
    assert names(ViewFold(2).fit({chosen: A}).partial_fit(B)) == [chosen, "view1"]


def test_rows_without_a_name_are_a_view_of_their_own_each_time() -> None:
    model = ViewFold(2, random_state=0).partial_fit(A)
    for _ in range(2):
        model.partial_fit(A)
        assert not model.delivery_.update
    assert names(model) == ["view0", "view1", "view2"]


def test_a_name_that_is_said_means_the_known_view() -> None:
    model = ViewFold(2, random_state=0).fit({"view1": A}).partial_fit(B, view="view1")
    assert (names(model), model.delivery_.n_corrected) == (["view1"], 20)


def test_names_in_a_list_are_invented_beside_those_that_are_there() -> None:
    named = as_view(A, name="view1")
    assert [view.name for view in as_views([named, B])] == ["view1", "view2"]
    assert [view.name for view in as_views([B, named])] == ["view0", "view1"]
    first = as_view(A, name="view0")
    assert [view.name for view in as_views([B, first, B])] == ["view1", "view0", "view2"]
    model = ViewFold(2, random_state=0).fit([named, B])
    assert model.predict([named, B]).shape == (20,)


def test_two_names_that_are_written_alike_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Two views are named '1'"):
        as_views({1: A, "1": B})
    assert [view.name for view in as_views({1: A, "01": B})] == ["1", "01"]


def test_a_fold_of_a_view_without_a_name_invents_one_likewise() -> None:
    model = ViewFold(2, random_state=0).fit({"view1": A})
    unnamed = as_view(B)
    assert isinstance(unnamed, View)
    assert unnamed.name is None
    state = model._fold(LocalEngine(), model._state, unnamed)
    assert state.names == ["view1", "view2"]


def test_what_is_looked_at_is_called_as_it_would_be_folded() -> None:
    model = ViewFold(2, random_state=0).fit(A)
    (found,) = inspect_views(B, model=model)
    assert found.name == names(model.partial_fit(B))[-1] == "view1"
    assert inspect_views(B)[0].name == "view0"


def test_an_invented_name_of_a_view_is_not_its_own() -> None:
    (first,) = as_views(B)
    assert first.name == "view0"
    model = ViewFold(2, random_state=0).fit({"view0": A}).partial_fit(first)
    assert (names(model), model.delivery_.update) == (["view0", "view1"], False)
    second = as_views([A, B])[1]
    model = ViewFold(2, random_state=0).fit({"view1": A}).partial_fit(second)
    assert (names(model), model.delivery_.update) == (["view1", "view2"], False)
    assert [view.name for view in as_views([second, first])] == ["view0", "view1"]


def test_a_view_of_a_list_gets_a_name_of_its_own_when_somebody_says_one() -> None:
    (unnamed,) = as_views([B])
    for said in (as_view(unnamed, name="view0"), as_views({"view0": unnamed})[0]):
        model = ViewFold(2, random_state=0).fit({"view0": A}).partial_fit(said)
        assert (names(model), model.delivery_.n_corrected) == (["view0"], 20)
    model = ViewFold(2, random_state=0).fit([A, B])
    assert model.predict(as_views([A, B])).shape == (20,)
    with pytest.raises(ValueError, match="view"):
        model.predict(unnamed)
