"""
Batches, for views that do not fit
==================================

An iterator of tables is one view. It is read once, into a temporary file.
"""

from sklearn.datasets import load_wine

from viewfold import ViewFold

wine = load_wine(as_frame=True).data.rename("w{:03}".format)


def batches():
    """Yield fifty bottles at a time, as a database would."""
    for start in range(0, len(wine), 50):
        yield wine.iloc[start : start + 50, :7]


model = ViewFold(n_clusters=3, random_state=0).partial_fit(batches(), view="minerals")
model.n_samples_
