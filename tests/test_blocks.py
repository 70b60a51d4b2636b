"""Rows come in blocks: only those that are there, and an error in one is the error of the pass."""

import numpy as np
import pytest

from viewfold.rows import LocalEngine, Rows, block_bytes


def test_blocks_hold_only_rows_that_are_there() -> None:
    X = np.arange(40.0).reshape(10, 4)
    present = np.array([1, 2, 5, 9])
    with block_bytes(64):
        rows = Rows(X, present)
        assert np.array_equal(np.vstack([block for _, block in rows.blocks()]), X[present])
        total = LocalEngine().reduce(lambda block: block.sum(axis=0), rows)
    assert np.array_equal(total, X[present].sum(axis=0))


@pytest.mark.parametrize("verb", ["reduce", "map"])
def test_an_error_in_a_block_is_the_error_of_the_pass(verb: str) -> None:
    def fail(block: np.ndarray, number: np.ndarray) -> np.ndarray:
        if number[0] > 4:
            raise ValueError("row 5")
        return block.sum(axis=0)

    engine, rows = LocalEngine(), np.ones((50, 1))
    with block_bytes(8), pytest.raises(ValueError, match="row 5"):
        getattr(engine, verb)(fail, rows, engine.numbers(rows))
