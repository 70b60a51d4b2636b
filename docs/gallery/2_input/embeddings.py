"""
Embeddings in a column of lists
===============================

As language and image models write them: a column of lists of one length, in Parquet or Arrow.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from viewfold import ViewFold

rng = np.random.default_rng(0)
topic = rng.integers(3, size=150)
vectors = rng.normal(size=(3, 16))[topic] + 0.4 * rng.normal(size=(150, 16))
texts = pd.DataFrame({"customer": [f"c{i}" for i in range(150)], "emb": list(vectors)})

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "letters.parquet")
    texts.to_parquet(path)
    model = ViewFold(n_clusters=3, random_state=0).partial_fit(path, ids="customer")
model.views_[0].name, model.views_[0].features[:3], np.bincount(model.labels_)
