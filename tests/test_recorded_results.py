"""Results stay the same to the last bit, unless they are meant to change: see recorded/cases.py."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "recorded"))
import cases

RECORDED = json.loads(cases.FILE.read_text())


@pytest.mark.filterwarnings("ignore:View")
@pytest.mark.parametrize("name", cases.names())
def test_results_are_those_on_record(name: str) -> None:
    expected, found = RECORDED["results"][name], cases.result(name)
    assert found["sizes"] == expected["sizes"]
    np.testing.assert_allclose(found["products"], expected["products"], rtol=1e-6, atol=1e-9)
    if RECORDED["machine"] == cases.machine():
        assert found["bits"] == expected["bits"]
        # Sums over what is left are taken block by block now, where there is more than one.
        if name.endswith("/one"):
            assert found["after_forget"] == expected["after_forget"]
