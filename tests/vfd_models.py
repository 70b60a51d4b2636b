"""A small model and its folder of buckets; what there is to know of a model, by sample."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import viewfold
from viewfold import ViewFold
from viewfold.rows import DiskEngine

N = 90


def labs_and_scan() -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=N)
    names = [f"patient-{i:03d}" for i in range(N)]
    labs = pd.DataFrame(4 * np.eye(3, 5)[y] + rng.normal(size=(N, 5)), names).add_prefix("lab")
    scan = pd.DataFrame(4 * np.eye(3, 4)[y] + rng.normal(size=(N, 4)), names).add_prefix("scan")
    return {"labs": labs.iloc[:70], "scan": scan.iloc[20:]}


def write_folder(path: Any, n_buckets: int = 3, keep: int = 2) -> Any:
    """Two views, each folded in an edit of its own."""
    new = ViewFold(3, n_init=2, random_state=0)
    for name, view in labs_and_scan().items():
        with viewfold.edit(path, new=new, keep=keep, engine=DiskEngine(n_buckets)) as model:
            model.partial_fit(view, view=name)
    return path


@pytest.fixture(scope="session")
def written_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(write_folder(tmp_path_factory.mktemp("written") / "s.vfd"))


@pytest.fixture
def state_folder(written_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written_folder, tmp_path / "s.vfd"))


def by_sample(model: Any) -> dict[str, Any]:
    """All rows of a model by their ids, its log, and what its encoders make of a few rows."""
    ids = pd.Index(model.ids_)
    order = ids.argsort()
    state = model._state
    rows = {
        name: model._collected(getattr(state, name))[order].tolist()
        for name in ("ids", "embedding", "seen", "history", "added", "fingerprints")
    }
    few = labs_and_scan()["labs"].iloc[:4]
    return {
        **rows,
        "log": state.log,
        "steps": state.steps,
        "key": state.key,
        "views": [(view.name, view.entry, view.features) for view in state.views],
        "transformed": model.transform(few, view="labs").tolist(),
        "params": model.get_params(),
    }


def files_of(path: Path) -> dict[str, bytes]:
    """Every file in a folder, by its name."""
    return {
        str(one.relative_to(path)): one.read_bytes() for one in path.rglob("*") if one.is_file()
    }
