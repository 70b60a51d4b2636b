"""
Late rows and corrections
=========================

More rows of a known view: new samples, samples that lacked it, corrections, and rows that came before are told apart by id.
"""

from sklearn.datasets import load_wine

from viewfold import ViewFold

wine = load_wine(as_frame=True).data.rename("w{:03}".format)
minerals, colour = wine.iloc[:, :5], wine.iloc[:, 9:]

model = ViewFold(n_clusters=3, random_state=0)
model.partial_fit(minerals.iloc[:100], view="minerals")
model.partial_fit(colour.iloc[50:150], view="colour")

later = minerals.iloc[80:170].copy()
later.iloc[0] = later.iloc[0] * 1.1  # one was wrong
model.partial_fit(later, view="minerals")
came = model.delivery_
print(
    f"{came.n_new} new, {came.n_late} late, {came.n_corrected} corrected, {came.n_same} as before"
)

# %%
# Nothing happens if the same file comes again:

model.partial_fit(later, view="minerals")
model.delivery_.n_same, len(model.movers())
