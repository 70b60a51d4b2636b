"""Write the tables of docs/cluster.md: two views of 2,000 patients, in parts."""

from pathlib import Path

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
group = np.arange(2000) % 4
told = []
for view, columns, share, parts in (("labs", 8, 0.9, 4), ("scan", 12, 0.7, 3)):
    values = 2 * rng.normal(size=(4, columns))[group] + rng.normal(size=(2000, columns))
    table = pd.DataFrame(values.astype(np.float32), columns=[f"{view}{j}" for j in range(columns)])
    table.insert(0, "patient", [f"p{i}" for i in range(2000)])
    table = table.sample(frac=share, random_state=columns)
    Path(view).mkdir()
    for i in range(parts):
        table[i::parts].to_parquet(f"{view}/part-{i}.parquet", index=False)
    told.append(f"{parts} files in {view}/")
print(", ".join(told))
