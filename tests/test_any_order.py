"""Whatever is called, in whatever order: no crash, only errors that say what is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_public_methods_in_any_order_with_changing_parameters() -> None:
    script = Path(__file__).with_name("any_order.py")
    ran = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(script)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode >= 0, f"the process crashed:\n{ran.stderr[-3000:]}"
    assert ran.returncode == 0, ran.stderr[-3000:]
