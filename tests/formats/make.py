"""Write the sample file of the present format: once, when the format or a part of it is new.

    python tests/formats/make.py

A file that is there is never written again: it must open forever.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from viewfold import ViewFold, edit
from viewfold.rows import DiskEngine
from viewfold.store.tables import FORMAT


def main() -> None:
    """Do all that a file can tell of to two small views, and write what a reader must find."""
    path = Path(__file__).with_name(f"{FORMAT}.vf")
    if path.exists():
        raise SystemExit(f"{path.name} is there, and stays as it is.")
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    labs = pd.DataFrame(4 * np.eye(3, 5)[y] + rng.normal(size=(60, 5))).add_prefix("lab")
    labs.index = [f"p{i}" for i in range(60)]
    scan = rng.poisson(0.2 + 3 * np.eye(3, 80)[y]).astype(float)
    with edit(path, new=ViewFold(4, random_state=0), keep=2) as model:
        model.partial_fit(labs.iloc[:30].mask(rng.random((30, 5)) < 0.1), view="labs")
        model.partial_fit(scan[10:], ids=labs.index[10:], view="scan")
    with edit(path) as model:
        model.partial_fit(labs.iloc[20:50], view="labs")
        model.recluster(3)
    with edit(path) as model:
        model.extend(labs.iloc[:3].rename("new {}".format), view="labs")
    with edit(path) as model:
        model.forget(["p7"])
    expected = {
        "method": "ViewFold",
        "views": ["labs", "scan"],
        "log": [event.what for event in model._state.log],
        "added": model._state.added.tolist(),
        "labels": model.to_frame()["cluster"].to_dict(),
        "rows": labs.iloc[50:].to_numpy().tolist(),
        "predicted": model.predict(labs.iloc[50:], view="labs").tolist(),
        "features": (told := model.features(view="labs", top=3))["feature"].tolist(),
        "means": told["mean"].tolist(),
    }
    path.with_name(f".{path.name}.lock").unlink()
    path.with_suffix(".json").write_text(json.dumps(expected) + "\n")


def folder() -> None:
    """The same for a folder of buckets."""
    path = Path(__file__).with_name(f"folder-{FORMAT}.vfd")
    if path.exists():
        raise SystemExit(f"{path.name} is there, and stays as it is.")
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=24)
    labs = pd.DataFrame(4 * np.eye(2, 3)[y] + rng.normal(size=(24, 3))).add_prefix("lab")
    labs.index = [f"p{i}" for i in range(24)]
    new = ViewFold(2, random_state=0, encoder="linear")
    for rows in (labs.iloc[:16], labs):
        with edit(path, new=new, engine=DiskEngine(2)) as model:
            model.partial_fit(rows, view="labs")
    expected = {
        "before": 16,
        "log": [event.what for event in model._state.log],
        "labels": model.to_frame()["cluster"].to_dict(),
        "rows": labs.iloc[:5].to_numpy().tolist(),
        "predicted": model.predict(labs.iloc[:5], view="labs").tolist(),
    }
    path.with_name(f".{path.name}.lock").unlink()
    path.with_suffix(".json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    for make in (main, folder):
        try:
            make()
        except SystemExit as there:
            print(there)
