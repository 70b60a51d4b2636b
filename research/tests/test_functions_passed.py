"""A fold and a command pass few functions: benchmarks/functions.py counts them."""

import sys

import pytest

import functions


@pytest.fixture(scope="module")
def found() -> dict[str, functions.Passed]:
    return functions.count()


def test_functions_are_counted_once_and_calls_each_time() -> None:
    from viewfold import metrics

    found = functions.passed(lambda: [metrics.accuracy([0, 1], [1, 0]) for _ in range(3)])
    assert found.calls["metrics.py", "accuracy"] == 3
    assert found.modules == {"metrics.py"}
    assert found.depth >= 2
    assert sys.getprofile() is None


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason="not yet short enough"))
        for name in functions.MOST
    ],
)
def test_few_functions_are_passed(name: str, found: dict[str, functions.Passed]) -> None:
    assert len(found[name].calls) <= functions.MOST[name]


def test_what_is_counted_is_printed(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    found: dict[str, functions.Passed],
) -> None:
    monkeypatch.setattr(functions, "count", lambda: found)
    monkeypatch.setattr(sys, "argv", ["functions.py", "--names"])
    functions.main()
    said = capsys.readouterr().out
    for name, one in found.items():
        assert f"{name}: {len(one.calls)} functions" in said
        assert all(function in said for _, function in one.calls)
