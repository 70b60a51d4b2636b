"""Patients who do not exist: two tables with names and units, to try and to show things on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sklearn.utils import Bunch

GROUPS = ("well", "short of iron", "infection", "weak heart")
# A mean for each group, and the spread within it. Neither table tells all groups apart.
LABS = {
    "iron_umol_l": ((18, 6, 15, 17), 3),
    "ferritin_ug_l": ((110, 14, 220, 120), 25),
    "hemoglobin_g_l": ((142, 104, 135, 139), 8),
    "crp_mg_l": ((3, 4, 85, 5), 9),
    "leukocytes_g_l": ((7, 7, 14, 7), 1.5),
    "sodium_mmol_l": ((140, 140, 139, 139), 2),
}
VITALS = {
    "temperature_c": ((36.7, 36.6, 38.6, 36.6), 0.3),
    "pulse_per_min": ((70, 86, 98, 92), 7),
    "systolic_mmhg": ((126, 118, 115, 98), 8),
    "breaths_per_min": ((14, 16, 21, 23), 2),
    "weight_gain_kg": ((0.0, 0.0, -0.4, 3.5), 0.6),
}


def make_patients(n_patients: int = 400, *, random_state: int = 0) -> Bunch:
    """Make blood tests and vital signs of patients of four hidden groups.

    Each table lacks some patients, and neither tells all groups apart: the blood of those with a
    weak heart looks well.

    Parameters
    ----------
    n_patients : int, default=400
        How many there are.
    random_state : int, default=0
        What they are drawn from.

    Returns
    -------
    Bunch
        ``views``: the DataFrames ``labs`` and ``vitals``, with the ids of patients as their index;
        ``target``: the hidden group of every patient, a Series by id.

    See Also
    --------
    make_multiview : Any number of views without names, for experiments.
    load_digits_views : Real data that come with the package.

    Examples
    --------
    >>> from viewfold.datasets import make_patients
    >>> patients = make_patients()
    >>> {name: view.shape for name, view in patients.views.items()}
    {'labs': (340, 6), 'vitals': (300, 5)}
    >>> patients.target.value_counts().sort_index().to_dict()
    {'infection': 105, 'short of iron': 89, 'weak heart': 116, 'well': 90}
    """
    import pandas as pd
    from sklearn.utils import Bunch

    rng = np.random.default_rng(random_state)
    group = rng.integers(len(GROUPS), size=n_patients)
    ids = pd.Index([f"p{i}" for i in range(n_patients)], name="patient")
    views = {}
    for name, table, share in (("labs", LABS, 0.85), ("vitals", VITALS, 0.75)):
        values = {
            feature: rng.normal(np.array(means)[group], spread).round(1)
            for feature, (means, spread) in table.items()
        }
        there = np.sort(rng.permutation(n_patients)[: round(share * n_patients)])
        views[name] = pd.DataFrame(values, index=ids).iloc[there]
    target = pd.Series(np.array(GROUPS)[group], index=ids, name="group")
    return Bunch(views=views, target=target)
