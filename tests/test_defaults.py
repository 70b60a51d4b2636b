"""Defaults that other tests replace by cheaper ones: see tests/conftest.py."""

import inspect
import json
from pathlib import Path

import numpy as np
from conftest import as_users_have_it

from viewfold import FCMVC, ViewFold
from viewfold.rows import DiskEngine

pytestmark = as_users_have_it


def test_a_new_folder_has_64_buckets_unless_it_is_told_otherwise(tmp_path: Path) -> None:
    ViewFold(2, n_init=1).fit(np.eye(9)).save(tmp_path / "a.vfd")
    (manifest,) = (tmp_path / "a.vfd").glob("manifest-*.json")
    assert json.loads(manifest.read_text())["states"][0]["n_buckets"] == 64
    assert DiskEngine().n_buckets == 64


def test_starts_of_kmeans_are_as_many_as_the_docstrings_say() -> None:
    for estimator in (ViewFold, FCMVC):
        n_init = estimator().n_init
        assert f"n_init : int, default={n_init}\n" in inspect.getdoc(estimator)
        assert n_init > 2
