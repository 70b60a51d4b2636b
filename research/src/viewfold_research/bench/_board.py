"""The leaderboard for people: its tables as text, and the diagram of critical differences.

The numbers are those of `_ranks`; `_sheets` and `_figures` put what is here beside the other
experiments, so that the leaderboard has the same formats and the same looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from viewfold_research.bench import _ranks
from viewfold_research.bench._sheets import Cell, Sheet, number, seconds, without_repeats
from viewfold_research.bench._tables import methods, span

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_INK, _OURS, _TIE = "#333333", "#0072B2", "#8a8a8a"


# ---- tables -------------------------------------------------------------------------------------


def ranks(table: pd.DataFrame) -> Sheet:
    """Lay out the ranks: a block for each share of missing samples, the best method first."""
    rows = []
    for line in table.to_dict("records"):
        fought = line["method"] != _ranks.OURS and "better" in line
        rows.append(
            [
                Cell(f"{100 * line['ratio']:.0f} %"),
                Cell(line["method"]),
                *(Cell(number(line[name], 2)) for name in ("rank", "rank_NMI")),
                *(Cell(number(line[name], 1)) for name in ("ACC", "NMI")),
                Cell(f"{line['finished']} of {line['sets']}"),
                *(Cell(f"{line[n]:.0f}" if fought else "–") for n in ("better", "even", "worse")),
                Cell(seconds(line["cpu_seconds"])),
                Cell(number(line["peak_bytes"] / 1e6, 0)),
            ]
        )
    columns = [("", "missing"), ("", "method"), ("mean rank", "ACC"), ("mean rank", "NMI")]
    columns += [("mean score, %", "ACC"), ("mean score, %", "NMI"), ("", "sets finished")]
    columns += [(f"{_ranks.OURS} is", word) for word in ("better", "even", "worse")]
    columns += [("median", "CPU s"), ("median", "memory, MB")]
    caption = (
        "Ranks are over data sets, 1 is the best; what did not end within its limits is ranked "
        "last. Scores, time and memory are over the sets that a method finished, and so to be "
        "compared only between methods that finished the same. Better, even and worse count sets: "
        f"even is within {_ranks.EVEN:g} point of accuracy, and not to end is worse."
    )
    return Sheet("ranks", "Ranks", caption, columns, without_repeats(rows))


def leaderboard(table: pd.DataFrame) -> Sheet:
    """Lay out accuracies: data sets below each other, methods side by side."""
    # Means do not tell an order: some methods were asked only about complete views.
    names, rows = methods(table), []
    by_share = table.sort_values("ratio", kind="stable")
    for (ratio, dataset), part in by_share.groupby(["ratio", "dataset"], sort=False):
        lines = {line["method"]: line for line in part.to_dict("records")}
        cells = [Cell(f"{100 * ratio:.0f} %"), Cell(dataset)]
        cells.append(Cell(f"{part['n_samples'].max():.0f}"))
        cells += [_accuracy(lines.get(name, {}), part["ACC"].max()) for name in names]
        rows.append(cells)
    columns = [("", "missing"), ("", "data set"), ("", "samples"), *(("ACC, %", n) for n in names)]
    draws = span(table.loc[table["ratio"] > 0, "draws"])
    caption = (
        f"Accuracy, mean over the draws of missing samples ({draws} of each share), with the "
        "scaling that was chosen without classes. Best of a row in bold; – where a method is not "
        "for incomplete views, or has not run yet."
    )
    return Sheet("leaderboard", "Accuracy", caption, columns, without_repeats(rows))


def _accuracy(line: dict[str, Any], best: float) -> Cell:
    if not line:
        return Cell("–")
    if line["note"]:
        return Cell({"out of memory": "memory", "time": "time"}.get(line["note"], "failed"))
    return Cell(number(line["ACC"], 1), best=line["ACC"] >= best)


def scalings(table: pd.DataFrame) -> Sheet:
    """Lay out what the choice without classes costs, and what it brings."""
    rows = [
        [
            Cell(line["method"]),
            Cell(str(line["problems"])),
            *(Cell(number(line[name], 1)) for name in ("own", "chosen", "best")),
            Cell(f"{100 * line['own_counts']:.0f} %"),
        ]
        for line in table.to_dict("records")
    ]
    labels = ("the method's own", "chosen", "best, by classes")
    columns = [("", "method"), ("", "problems"), *(("ACC, %", label) for label in labels)]
    caption = (
        "Of each method's scalings, the one counts whose labels agree best (mean NMI) with k-means "
        "on every view alone, under each scaling. Means over problems on which all scalings ended."
    )
    return Sheet("scalings", "Choice of scaling", caption, [*columns, ("", "its own chosen")], rows)


# ---- figure -------------------------------------------------------------------------------------


def groups(ranks: Any, difference: float) -> list[tuple[int, int]]:
    """Return the longest runs (first, last) of sorted ranks that are not to be told apart.

    Examples
    --------
    >>> from viewfold_research.bench._board import groups
    >>> groups([1.0, 1.5, 2.2, 4.0], 1.0)
    [(0, 1), (1, 2)]
    """
    ranks = np.asarray(ranks)
    ends = np.searchsorted(ranks, ranks + difference, side="right") - 1
    found = [(i, int(end)) for i, end in enumerate(ends) if end > i]
    return [run for i, run in enumerate(found) if i == 0 or run[1] > found[i - 1][1]]


def diagram(part: pd.DataFrame, figure: Figure, ax: Any) -> None:
    """Draw mean ranks on a line, with bars over those that Nemenyi's test does not tell apart."""
    names, at = list(part["method"]), part["rank"].to_numpy(float)
    difference, k = float(part["critical_difference"].iloc[0]), len(part)
    bars = groups(at, difference)
    left = (k + 1) // 2
    depth = 0.9 + 0.28 * len(bars)
    ax.set(xlim=(1 - 0.55 * k / 2, k + 0.55 * k / 2), ylim=(depth + 0.55 * left + 0.3, -1.6))
    ax.axis("off")
    ax.plot([1, k], [0, 0], color=_INK, linewidth=1.2)
    for tick in range(1, k + 1):
        ax.plot([tick, tick], [0, -0.15], color=_INK, linewidth=1)
        ax.text(tick, -0.25, str(tick), ha="center", va="bottom", size=8)
    ax.plot([1, 1 + difference], [-1.05, -1.05], color=_INK, linewidth=2.5)
    text = f"critical difference {difference:.2f}, {part['sets'].iloc[0]} data sets"
    ax.text(1, -1.2, text, ha="left", va="bottom", size=8)
    for i, (name, x) in enumerate(zip(names, at, strict=True)):
        to_left = i < left
        y = depth + 0.55 * (i if to_left else k - 1 - i)
        edge, side = (0.8, "right") if to_left else (k + 0.2, "left")
        color, weight = (_OURS, "bold") if name == _ranks.OURS else (_INK, "normal")
        ax.plot([x, x, edge], [0, y, y], color=color, linewidth=0.9)
        words = f"{name}  {x:.1f}" if to_left else f"{x:.1f}  {name}"
        ax.text(edge + (-0.1 if to_left else 0.1), y, words, ha=side, va="center", size=9,
                color=color, weight=weight)  # fmt: skip
    for i, (first, last) in enumerate(bars):
        y = 0.35 + 0.28 * i
        ends = [at[first] - 0.05, at[last] + 0.05]
        ax.plot(ends, [y, y], color=_TIE, linewidth=4, solid_capstyle="round", zorder=4)
    figure.suptitle(_title(part), fontsize=10, fontweight="bold")


def _title(part: pd.DataFrame) -> str:
    share, p = 100 * part["ratio"].iloc[0], part["p_equal"].iloc[0]
    what = f"{share:.0f} % missing: mean rank of the accuracy"
    if p != p:
        return what
    return f"{what} (Friedman p {f'= {p:.3f}' if p >= 0.001 else '< 0.001'})"
