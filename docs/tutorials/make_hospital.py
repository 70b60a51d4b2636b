"""Write the files of docs/tutorials/hospital.md: six deliveries of three views, and new patients.

No patient is real. Everybody belongs to one of five hidden groups; each view tells some of them
apart, and none tells all. `python make_hospital.py FOLDER` writes the same files whenever it runs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

SEED, N_PATIENTS, N_GROUPS = 4, 500, 5
PATIENTS = np.array([f"P{i:04d}" for i in range(1, N_PATIENTS + 1)])
GROUPS = np.random.default_rng(SEED).integers(N_GROUPS, size=N_PATIENTS)

# Mean of each group, and spread within a group. Groups 3 and 4 have the same blood.
LABS = {
    "crp_mg_l": ([8, 95, 20, 12, 12], 12),
    "leukocytes_g_l": ([7, 15, 9, 7, 7], 1.8),
    "creatinine_umol_l": ([80, 95, 240, 85, 85], 25),
    "potassium_mmol_l": ([4.2, 4.1, 5.4, 4.2, 4.2], 0.3),
    "hemoglobin_g_l": ([140, 118, 98, 141, 141], 9),
    "bnp_ng_l": ([900, 120, 380, 70, 70], 110),
    "sodium_mmol_l": ([133, 139, 138, 140, 140], 2),
    "glucose_mmol_l": ([6, 7, 6, 9.5, 9.5], 1.2),
}
WARDS = np.array(["cardiology", "infections", "renal", "general"])
SYMPTOMS = ["cough", "breathless", "fatigue", "pain", "thirst", "swelling", "fever", "sleep"]


def labs(rng: np.random.Generator) -> pd.DataFrame:
    """Return blood tests, with a tenth of the cells missing, ward and day of admission."""
    table = pd.DataFrame({"patient": PATIENTS})
    for name, (means, spread) in LABS.items():
        values = np.maximum(rng.normal(np.array(means)[GROUPS], spread), spread / 10)
        digits = 1 if spread < 5 else 0
        table[name] = np.where(rng.random(N_PATIENTS) < 0.1, np.nan, values.round(digits))
    usual = np.minimum(GROUPS, 3)
    elsewhere = rng.random(N_PATIENTS) < 0.3
    table["ward"] = WARDS[np.where(elsewhere, rng.integers(4, size=N_PATIENTS), usual)]
    days = pd.to_timedelta(rng.integers(90, size=N_PATIENTS), unit="D")
    table["admitted"] = (pd.Timestamp("2026-06-01") + days).strftime("%Y-%m-%d")
    return table


def scans(rng: np.random.Generator) -> pd.DataFrame:
    """Return embeddings of scans. Groups 0 and 1 look alike."""
    centers = rng.normal(size=(N_GROUPS, 32))
    centers[1] = centers[0]
    rows = centers[GROUPS] + rng.normal(scale=1.2, size=(N_PATIENTS, 32))
    return pd.DataFrame({"patient": PATIENTS, "embedding": list(rows.astype(np.float32))})


def answers(rng: np.random.Generator) -> pd.DataFrame:
    """Return answers to a questionnaire, from 0 to 10, and whether somebody smokes."""
    means = rng.uniform(1, 9, size=(N_GROUPS, len(SYMPTOMS)))
    rows = np.clip(rng.normal(means[GROUPS], 1.5), 0, 10).round(1)
    table = pd.DataFrame(rows, columns=SYMPTOMS)
    table.insert(0, "patient", PATIENTS)
    table["smoker"] = np.where(rng.random(N_PATIENTS) < 0.3, "yes", "no")
    return table


def write_scans(table: pd.DataFrame, path: Path) -> None:
    """Write embeddings as a column of lists."""
    columns = {"patient": pa.array(table["patient"]), "embedding": pa.array(table["embedding"])}
    pq.write_table(pa.table(columns), path)


def write_answers(table: pd.DataFrame, path: Path) -> None:
    """Write a table as spreadsheets do where the comma is the decimal sign."""
    table.to_csv(path, index=False, sep=";", decimal=",")


def main(folder: Path) -> None:
    """Write all files."""
    rng = np.random.default_rng(SEED)
    blood, scan, asked = labs(rng), scans(rng), answers(rng)
    (folder / "new").mkdir(parents=True, exist_ok=True)

    # Week 1. In twelve rows, creatinine is in mg/dl instead of µmol/l.
    first = blood[:360].copy()
    first.loc[40:51, "creatinine_umol_l"] = (first.loc[40:51, "creatinine_umol_l"] / 88).round(1)
    first.to_csv(folder / "labs.csv", index=False)
    write_scans(scan[100:400], folder / "scan.parquet")

    # Week 2. Nine of the ids were typed by hand, in small letters.
    typed = asked[150:430].copy()
    typed.loc[200:208, "patient"] = typed.loc[200:208, "patient"].str.lower()
    write_answers(typed, folder / "questionnaire.csv")

    # Patient P0123 has withdrawn: no later file has the row.
    blood, scan, asked = (table.drop(index=122) for table in (blood, scan, asked))

    # Week 3. The rows that were wrong, patients without labs so far, and new ones.
    late = pd.concat([blood.loc[40:51], blood.loc[360:469]])
    late.loc[late.index[-6:], "ward"] = "day clinic"
    late.to_csv(folder / "labs2.csv", index=False)

    # Week 4. In the first file, embeddings stand beside the ids of others.
    right = scan.loc[20:489]
    write_scans(right, folder / "scan2.parquet")
    others = rng.permutation(len(right))
    mixed = right.assign(embedding=right["embedding"].iloc[others].tolist())
    write_scans(mixed, folder / "scan_mixed.parquet")
    write_answers(asked.loc[30:489], folder / "questionnaire2.csv")

    # Patients that are to be told a cluster, and no more.
    blood.loc[490:].to_csv(folder / "new" / "labs.csv", index=False)
    write_scans(scan.loc[490:495], folder / "new" / "scan.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
