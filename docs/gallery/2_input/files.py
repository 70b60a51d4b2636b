"""
Files
=====

Wherever a view goes, a path goes: CSV, Parquet, Excel and :doc:`many more </files>`. A :class:`viewfold.data.File` says what a file does not tell.
"""

import tempfile
from importlib.util import find_spec
from pathlib import Path

from sklearn.datasets import load_wine

from viewfold import ViewFold
from viewfold.data import File

wine = load_wine(as_frame=True).data.rename("w{:03}".format).rename_axis("bottle")
folder = tempfile.TemporaryDirectory()
here = Path(folder.name)
wine.iloc[:140, :5].to_csv(here / "minerals.csv", sep=";", decimal=",")
wine.iloc[30:, 5:9].to_parquet(here / "phenols.parquet")

model = ViewFold(n_clusters=3, random_state=0)
model.partial_fit(File(here / "minerals.csv", decimal=","), ids="bottle")
model.partial_fit(here / "phenols.parquet", ids="bottle")

if find_spec("openpyxl"):
    wine.iloc[:, 9:].to_excel(here / "colour.xlsx")
    model.partial_fit(here / "colour.xlsx", ids="bottle")

[(record.name, record.n_samples, record.n_features) for record in model.views_]

# %%

folder.cleanup()
