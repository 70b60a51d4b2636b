"""
AnnData and MuData
==================

``obs_names`` are the ids, each modality is a view, and clusters go back into ``obs``.
"""

from importlib.util import find_spec

from sklearn.datasets import load_wine

from viewfold import ViewFold

wine = load_wine(as_frame=True).data.rename("w{:03}".format)
model = ViewFold(n_clusters=3, random_state=0)

if find_spec("mudata"):
    import anndata
    import mudata

    mudata.set_options(pull_on_update=False)
    minerals = anndata.AnnData(wine.iloc[:140, :5])
    colour = anndata.AnnData(wine.iloc[30:, 9:])
    cells = mudata.MuData({"minerals": minerals, "colour": colour})
    model.fit(cells)
    model.annotate(cells)
    print(cells.obs[["viewfold", "viewfold_confidence"]].head())
    print(cells.obsm["X_viewfold"].shape)
else:
    print("Install viewfold[bio] for AnnData and MuData.")
