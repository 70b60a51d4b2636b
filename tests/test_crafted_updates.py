"""Files of updated views with the right digest and impossible encoders or keys are refused."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import Data
from crafted_files import craft, forge

import viewfold
from viewfold import StateFileError, ViewFold

pytestmark = pytest.mark.usefixtures("every_check")

ROWS = "encoder/1/n_rows"
COPIES = (
    "INSERT INTO arrays SELECT 'encoder/1' || repeat('/{way}', i::INT) || substr(name, 10) AS name,"
    " * EXCLUDE (name, i) FROM (SELECT base.*, i FROM base, range(1, {depth}) t(i))"
)


def n_rows(value: float) -> str:
    data = np.float64(value).tobytes().hex()
    return f"UPDATE arrays SET data = from_hex('{data}') WHERE name = '{ROWS}'"


def nested(way: str, depth: int, kept: str) -> str:
    """Put a committee into itself, many times."""
    return "; ".join(
        [
            f"CREATE TEMP TABLE base AS FROM arrays WHERE name LIKE 'encoder/1%' AND {kept}",
            "DELETE FROM arrays WHERE name LIKE 'encoder/1/%'",
            "INSERT INTO arrays FROM base WHERE name LIKE 'encoder/1/%'",
            COPIES.format(way=way, depth=depth),
        ]
    )


CRAFTED = {
    "no number of rows": (n_rows(np.nan), "from nan rows"),
    "infinitely many rows": (n_rows(np.inf), "from inf rows"),
    "more rows than there can be": (n_rows(1e308), "rows in the encoder"),
    "less than no rows": (n_rows(-1), "from -1.0 rows"),
    "no rows": (n_rows(0), "from 0.0 rows"),
    "rows as a list": (f"UPDATE arrays SET shape = [1] WHERE name = '{ROWS}'", "from array"),
    "nothing of rows": (f"DELETE FROM arrays WHERE name = '{ROWS}'", "from None rows"),
    "no encoder": ("DELETE FROM arrays WHERE name LIKE 'encoder/1/encoder%'", "no committee"),
    "others that are none": (
        "UPDATE arrays SET type = 'filled' WHERE name = 'encoder/1/others'",
        "no committee.encoder",
    ),
    "a hundred encoders": (nested("others", 100, "name NOT LIKE '%others%'"), "more than 8"),
    "an encoder within itself": (
        nested("encoder", 100, f"name IN ('encoder/1', '{ROWS}')"),
        "no committee.encoder",
    ),
    "a thousand times within itself": (
        nested("encoder", 1000, f"name IN ('encoder/1', '{ROWS}')"),
        "damaged",
    ),
    "a key that is no number": ("UPDATE meta SET value = 'true' WHERE key = 'key'", "key of its"),
    "no key": ("UPDATE meta SET value = 'null' WHERE key = 'key'", "key of its"),
    "a key that is gone": ("DELETE FROM meta WHERE key = 'key'", "damaged"),
}


@pytest.fixture(scope="module")
def updated_file(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Path:
    X, ids = data.views["labs"], [f"s{i}" for i in range(160)]
    model = ViewFold(4, random_state=0).partial_fit(X[:60], ids=ids[:60], view="labs")
    model.partial_fit(X[60:], ids=ids[60:], view="labs")
    path = tmp_path_factory.mktemp("updated") / "model.vf"
    model.save(path)
    return path


@pytest.mark.parametrize("kind", CRAFTED)
def test_what_no_update_could_have_written_is_refused(
    updated_file: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copy(updated_file, tmp_path))
    statements, message = CRAFTED[kind]
    craft(path, *statements.split("; "))
    forge(monkeypatch)
    with pytest.raises(StateFileError, match=message):
        viewfold.load(path)
