"""
polars
======

Frames of polars, lazy or not, with ids in a column.
"""

from importlib.util import find_spec

from sklearn.datasets import load_wine

from viewfold import ViewFold

wine = load_wine(as_frame=True).data.rename("w{:03}".format).rename_axis("bottle").reset_index()
model = ViewFold(n_clusters=3, random_state=0)

if find_spec("polars"):
    import polars as pl

    minerals = pl.DataFrame(wine.iloc[:140, :6].to_dict("list"))
    colour = pl.LazyFrame(wine.iloc[30:, [0, 10, 11, 12, 13]].to_dict("list"))
    model.partial_fit(minerals, ids="bottle", view="minerals")
    model.partial_fit(colour, ids="bottle", view="colour")
    print(model.to_frame().head())
else:
    print("polars is not installed")
