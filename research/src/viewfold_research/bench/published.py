"""The numbers that the FCMVC-IV paper prints, each with the place where it stands.

``published.csv`` was made by :func:`transcribe` from the paper's LaTeX source; nothing in it was
typed by hand. The paper's other results exist only as pictures and are not here.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

EXPERIMENTS = ("complete", "incomplete", "parameters", "datasets")
_COLUMNS = ["experiment", "dataset", "method", "metric", "value", "std", "note", "source"]
_LABELS = {"comlete_result": "complete", "incomlete_result": "incomplete", "dataset": "datasets"}
_METRICS = {"ACC": "ACC", "NMI": "NMI", "Purity": "purity", "F-score": "F"}


def table(experiment: str) -> pd.DataFrame:
    """Look up what the paper publishes on an experiment.

    The scores are in percent. The paper calls them averages over 50 runs of k-means; its program
    takes the best of the runs, metric by metric, so they are to be compared with maxima.

    Parameters
    ----------
    experiment : {'complete', 'incomplete', 'parameters', 'datasets'}
        Complete views; incomplete views, mean and standard deviation over the missing ratios 0.1
        to 0.5; how many parameters each method has; the sizes of the data sets.

    Returns
    -------
    DataFrame
        Columns dataset, method, metric, value, std, note (``out of memory`` where the paper has a
        dash) and source (label of the table, row, column). Empty where something does not apply.

    Examples
    --------
    >>> from viewfold_research.bench import published
    >>> numbers = published.table("complete")
    >>> rows = numbers.query("dataset == 'uci-digit' and method == 'FCMVC'")
    >>> dict(zip(rows["metric"], rows["value"]))
    {'ACC': 85.3, 'NMI': 75.44, 'purity': 85.3, 'F': 73.4}
    >>> rows["source"].iloc[0]
    'comlete_result: ACC, uci-digit; FCMVC'
    """
    import pandas as pd

    if experiment not in EXPERIMENTS:
        raise ValueError(
            f"The paper prints no numbers for {experiment!r}, or only as a picture; there are "
            f"{', '.join(EXPERIMENTS)}."
        )
    with (files("viewfold_research.bench") / "published.csv").open(encoding="utf-8") as file:
        everything = pd.read_csv(file, dtype={"note": str}, keep_default_na=False, na_values=[""])
    words = ["dataset", "method", "metric", "note", "source"]
    everything[words] = everything[words].fillna("")
    chosen = everything[everything["experiment"] == experiment]
    return chosen.drop(columns="experiment").reset_index(drop=True)


def transcribe(tex: str) -> pd.DataFrame:
    """Read the numbers off the LaTeX source of the paper.

    ``transcribe(text).to_csv("published.csv", index=False)`` makes the file of this package.

    Parameters
    ----------
    tex : str
        The source.

    Returns
    -------
    DataFrame
        All experiments together, as in ``published.csv``.
    """
    import pandas as pd

    found: list[dict[str, object]] = []
    for block in re.findall(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", tex, re.DOTALL):
        label = re.search(r"\\label\{(\w+)\}", block)
        if label is not None and label[1] in _LABELS:
            rows = [_cells(line) for line in _lines(block)]
            read = _sizes if _LABELS[label[1]] == "datasets" else _scores
            found += read([row for row in rows if any(row)], label[1])
    return pd.DataFrame(found, columns=_COLUMNS)


def _lines(block: str) -> list[str]:
    r"""Split a table into its rows; the heads have tables of their own, and so other ``\\``."""
    head = re.compile(
        r"\\begin\{tabular\}\[c\]\{@\{\}c@\{\}\}(.*?)\\\\.*?\\end\{tabular\}", re.DOTALL
    )
    body = head.sub(r"\1", block.split(r"\toprule", 1)[1].split(r"\bottomrule", 1)[0])
    return re.split(r"\\\\", body)


def _cells(line: str) -> list[str]:
    """Take the mark-up off the cells of a row."""
    line = re.sub(r"\\hline|\\color\[HTML\]\{\w+\}|\\textbf|\\ul(?![a-z])", "", line)
    line = re.sub(r"\\multicolumn\{\d+\}\{c\}", "", line)
    return [re.sub(r"[{}\s]+", " ", cell).strip() for cell in line.split("&")]


def _scores(rows: list[list[str]], label: str) -> list[dict[str, object]]:
    methods, metric = rows[0][1:], ""
    found: list[dict[str, object]] = []
    for name, *cells in rows[1:]:
        if not cells:
            metric = _METRICS[name]
            continue
        counts = name.startswith("Param")
        for method, cell in zip(methods, cells, strict=True):
            value, std = _number(cell)
            found.append(
                {
                    "experiment": "parameters" if counts else _LABELS[label],
                    "dataset": "" if counts else name,
                    "method": method,
                    "metric": "parameters" if counts else metric,
                    "value": value,
                    "std": std,
                    "note": "out of memory" if value is None else "",
                    "source": f"{label}: {name if counts else f'{metric}, {name}'}; {method}",
                }
            )
    return found


def _sizes(rows: list[list[str]], label: str) -> list[dict[str, object]]:
    heads = rows[0][1:]
    return [
        {
            "experiment": "datasets",
            "dataset": name,
            "metric": head.lower(),
            "value": float(cell),
            "source": f"{label}: {name}; {head}",
        }
        for name, *cells in rows[1:]
        for head, cell in zip(heads, cells, strict=True)
    ]


def _number(cell: str) -> tuple[float | None, float | None]:
    if cell == "-":
        return None, None
    value, _, std = re.sub(r"\s", "", cell).partition("±")
    return float(value), float(std) if std else None
