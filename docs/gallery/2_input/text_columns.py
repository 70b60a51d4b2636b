"""
Categories and dates
====================

Text with few levels, booleans and dates become features; free text is left out, and told.
"""

import numpy as np
import pandas as pd

from viewfold import ViewFold, inspect_views

rng = np.random.default_rng(0)
kind = rng.integers(2, size=120)
orders = pd.DataFrame(index=[f"c{i}" for i in range(120)])
orders["total"] = rng.normal(50 + 40 * kind, 10)
orders["channel"] = np.where(rng.random(120) < 0.2 + 0.6 * kind, "shop", "web")
orders["member"] = rng.random(120) < 0.3 + 0.4 * kind
orders["first_order"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(
    rng.integers(300, size=120), "D"
)

print(inspect_views(orders)[0])

# %%

model = ViewFold(n_clusters=2, random_state=0).partial_fit(orders, view="orders")
model.views_[0].features

# %%

model.features(cluster=0, top=4).round(2)
