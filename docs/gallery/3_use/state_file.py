"""
A state file, undo and forget
=============================

One file, changed as a whole or not at all. `edit` locks it, loads it, and writes it if the block succeeds.
"""

import tempfile
from pathlib import Path

from sklearn.datasets import load_wine

import viewfold
from viewfold import ViewFold

wine = load_wine(as_frame=True).data.rename("w{:03}".format)
folder = tempfile.TemporaryDirectory()
file = Path(folder.name, "wines.vf")

with viewfold.edit(file, new=ViewFold(n_clusters=3, random_state=0)) as model:
    model.partial_fit(wine.iloc[:140, :5], view="minerals")
with viewfold.edit(file) as model:
    model.partial_fit(wine.iloc[30:, 9:], view="colour")

viewfold.undo(file)
[record.name for record in viewfold.load(file).views_]

# %%

viewfold.forget(file, ["w003", "w007"])
"w003" in viewfold.load(file).ids_, viewfold.verify(file).problems

# %%

folder.cleanup()
