"""Write three tables about the same wines, each without some bottles.

The measurements are real: 178 wines of three cultivars (the wine data of the UCI repository, which
come with scikit-learn). That three laboratories shared the work, and which bottles each of them
got, is made up.
"""

import numpy as np
from sklearn.datasets import load_wine

VIEWS = {
    "minerals": ["alcohol", "malic_acid", "ash", "alcalinity_of_ash", "magnesium", "proline"],
    "phenols": ["total_phenols", "flavanoids", "nonflavanoid_phenols", "proanthocyanins"],
    "colour": ["color_intensity", "hue", "od280/od315_of_diluted_wines"],
}
MISSING = {"minerals": 40, "phenols": 60, "colour": 50}

wine = load_wine(as_frame=True)
table = wine.data
table.index = [f"w{i:03}" for i in range(len(table))]
table.index.name = "bottle"
cultivar = wine.target.set_axis(table.index)

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    for view, columns in VIEWS.items():
        gone = rng.choice(table.index, MISSING[view], replace=False)
        table[columns].drop(gone).to_csv(f"{view}.csv")
        print(f"{view}.csv: {len(table) - MISSING[view]} bottles, {len(columns)} measurements")
