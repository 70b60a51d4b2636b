"""The paper's figures, drawn from the results database.

A method has the same colour, marker and line in every figure; colours are told apart by people who
do not see all of them (Okabe and Ito's), and markers and lines by everyone else in print.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from viewfold_research.bench import _board, _ranks
from viewfold_research.bench import _tables as tables

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    Data = dict[str, pd.DataFrame]

_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_LINES = ("-", "--", "-.", ":")
_INK, _PALE = "#333333", "#8a8a8a"
_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": _INK,
    "axes.edgecolor": _PALE,
    "axes.labelcolor": _INK,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "xtick.color": _PALE,
    "ytick.color": _PALE,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "svg.hashsalt": "viewfold",  # the same figure gives the same file
}


@contextmanager
def style() -> Iterator[None]:
    """Draw and save with the looks of this module, without a change to the user's settings."""
    import matplotlib

    with matplotlib.rc_context(_STYLE):
        yield


def build(data: Data) -> dict[str, Figure]:
    """Draw all figures for which there are results."""
    looks = _looks(data["cells"])
    made: dict[str, Figure] = {}
    with style():
        rows = tables.ratios(data)
        for name in rows["dataset"].unique():
            made[f"incomplete-{name}"] = _ratios(rows[rows["dataset"] == name], looks)
        for name, draw in {"time": _time, "order": _order, "scale": _scale}.items():
            if (data["cells"]["experiment"] == name).any():
                made[name] = draw(data, looks)
        for ratio, part in _leagues(data):
            figure, axes = _figure(1, 1, 9.5, 1.5 + 0.2 * len(part))
            _board.diagram(part, figure, axes[0, 0])
            made[f"leaderboard-{100 * ratio:.0f}"] = figure
        steps = tables.curves(data)
        for name in steps["dataset"].unique():
            made[f"convergence-{name}"] = _convergence(steps[steps["dataset"] == name])
    return made


def _leagues(data: Data) -> Iterator[tuple[float, pd.DataFrame]]:
    """Return the ranks for each share of missing samples, where there is something to compare."""
    found = _ranks.ranks(data)
    for ratio, part in found.groupby("ratio") if len(found) else ():
        if len(part) > 1:
            yield float(ratio), part


def _looks(cells: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Give every method a colour, a marker and a line that no other one has together."""
    looks = {}
    for i, name in enumerate(tables.methods(cells)):
        again, color = divmod(i, len(_COLORS))
        looks[name] = {
            "color": _COLORS[color],
            "marker": _MARKERS[i % len(_MARKERS)],
            "linestyle": _LINES[again % len(_LINES)] if again else _LINES[0 if i < 2 else i % 4],
            "zorder": 5 if i < 2 else 3,
        }
    return looks


def _figure(
    rows: int, columns: int, width: float, height: float, **more: Any
) -> tuple[Figure, Any]:
    """Make a figure without pyplot, which would keep it alive for good."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **more)
    return figure, axes


def _line(look: dict[str, Any]) -> dict[str, Any]:
    return {
        **{name: look[name] for name in ("color", "marker", "linestyle", "zorder")},
        "markeredgecolor": "white",
        "markeredgewidth": 0.6,
    }


def _legend(figure: Figure, axes: Any) -> None:
    """Put one legend below all panels, in as many columns as there is room for."""
    handles: dict[str, Any] = {}
    for ax in axes.flat:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        lines = -(-len(handles) // max(1, int(figure.get_figwidth() // 1.7)))
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower center",
            ncols=-(-len(handles) // lines),  # lines of the same length
            handlelength=3,
        )


def _plain(axis: Any) -> None:
    """Write the powers of ten on a logarithmic axis as the numbers that they are."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if x >= 1 else f"{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def _ratios(rows: pd.DataFrame, looks: dict[str, dict[str, Any]]) -> Figure:
    """Draw each metric against the missing ratio: mean over draws, with a band of one deviation."""
    metrics = [metric for metric in tables.METRICS if (rows["metric"] == metric).any()]
    figure, axes = _figure(1, len(metrics), 2.75 * len(metrics), 3.3)
    for ax, metric in zip(axes.flat, metrics, strict=True):
        part = rows[rows["metric"] == metric]
        for name in tables.methods(part):
            line = part[part["method"] == name]
            x, y, band = (line[c].to_numpy(float) for c in ("ratio", "mean", "std"))
            ax.plot(100 * x, y, label=name, **_line(looks[name]))
            band = np.nan_to_num(band)
            color = looks[name]["color"]
            ax.fill_between(100 * x, y - band, y + band, color=color, alpha=0.14, linewidth=0)
        ax.set(title=metric, xlabel="missing in each view (%)")
        ax.set_xticks(100 * np.unique(part["ratio"]))
    axes[0, 0].set_ylabel(f"{rows['dataset'].iloc[0]}: score (%)")
    _legend(figure, axes)
    return figure


def _time(data: Data, looks: dict[str, dict[str, Any]]) -> Figure:
    """Draw CPU seconds as bars on a logarithmic axis; methods that did not end are marked."""
    rows = tables.time(data)
    sets, names = list(rows["dataset"].unique()), tables.methods(rows)
    least = rows["cpu_seconds"].min()
    foot = 10 ** np.floor(np.log10(least / 1.5)) if least > 0 else 0.1
    figure, axes = _panels(sets, names, 0.24)
    for ax, dataset in zip(axes.flat, sets, strict=False):
        part = rows[rows["dataset"] == dataset].set_index("method").reindex(names)
        taken = part["cpu_seconds"].to_numpy(float)
        colors = [looks[name]["color"] for name in names]
        ax.barh(range(len(names)), taken - foot, 0.72, left=foot, color=colors)
        for y, note in enumerate(part["note"]):
            if note and np.isnan(taken[y]):  # NaN: the method was not asked
                words = {"va": "center", "size": 7.5, "color": _PALE}
                ax.text(1.15 * foot, y, _why(note) if note == note else "–", **words)
        ax.set(title=dataset, xlabel="CPU seconds", xscale="log")
        ax.set_xlim(foot, 2 * max(rows["cpu_seconds"].max(), 10 * foot))
        _plain(ax.xaxis)
    return figure


def _panels(sets: list[str], names: list[str], height: float) -> tuple[Figure, Any]:
    """Make a panel for each data set, with a line for each method, the first one on top."""
    columns = min(len(sets), 3)
    lines = -(-len(sets) // columns)
    figure, axes = _figure(
        lines,
        columns,
        1.6 + 3.1 * columns,
        0.5 + lines * (0.75 + height * len(names)),
        sharey=True,
    )
    for ax in axes.flat[len(sets) :]:
        ax.set_visible(False)
    for ax in axes.flat[: len(sets)]:
        ax.set_yticks(range(len(names)), names)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="y", visible=False)
    axes[0, 0].set_ylim(len(names) - 0.4, -0.7)
    return figure, axes


def _why(note: str) -> str:
    return note if note in ("out of memory", "time") else "failed"


def _order(data: Data, looks: dict[str, dict[str, Any]]) -> Figure:
    """Draw the accuracy for every order of views, a line from the lowest to the highest."""
    rows = tables.orders(data)
    rows = rows[rows["metric"] == tables.METRICS[0]]
    sets, names = list(rows["dataset"].unique()), tables.methods(rows)
    figure, axes = _panels(sets, names, 0.36)
    for ax, dataset in zip(axes.flat, sets, strict=False):
        part = rows[rows["dataset"] == dataset]
        for y, name in enumerate(names):
            _spread(ax, y, part["mean"][part["method"] == name].to_numpy(float), looks[name])
        ax.set(title=dataset, xlabel="ACC (%), mean over runs")
        ax.margins(x=0.15)
    return figure


def _spread(ax: Any, y: float, values: Any, look: dict[str, Any]) -> None:
    """Draw values along a line, and how far they are apart."""
    if not len(values):
        return
    low, high, color = values.min(), values.max(), look["color"]
    bar = {"linewidth": 5, "alpha": 0.25, "zorder": 2, "solid_capstyle": "round"}
    dots = {"marker": look["marker"], "linestyle": "none", "alpha": 0.75, "markeredgewidth": 0}
    ax.plot([low, high], [y, y], color=color, **bar)
    ax.plot(values, np.full(len(values), y), color=color, **dots)
    label = f"{high - low:.1f}"
    ax.annotate(label, (high, y), (7, 0), textcoords="offset points", va="center", size=8)


def _convergence(steps: pd.DataFrame) -> Figure:
    """Draw the objective: methods below each other, missing ratios side by side, a line a view."""
    from matplotlib import colormaps

    names, ratios = tables.methods(steps), sorted(steps["ratio"].unique())
    shape = len(names), len(ratios)
    figure, axes = _figure(
        *shape, max(5, 0.8 + 2.6 * len(ratios)), 0.6 + 1.9 * len(names), sharex=True, sharey=True
    )
    views = sorted(steps["view"].unique())
    shade = dict(zip(views, colormaps["viridis"](np.linspace(0, 0.85, len(views))), strict=True))
    for i, j in np.ndindex(*shape):
        ax, part = axes[i, j], steps[(steps["method"] == names[i]) & (steps["ratio"] == ratios[j])]
        if len(part):
            _walk(ax, part[part["cell"] == part["cell"].iloc[0]], shade)
        ax.xaxis.get_major_locator().set_params(integer=True)
        if i == 0:
            ax.set_title(f"{100 * ratios[j]:.0f} % missing")
        if j == 0:
            ax.set_ylabel(f"{names[i]}\nchange (%)")
    for ax in axes[-1]:
        ax.set_xlabel("iteration")
    figure.suptitle(steps["dataset"].iloc[0], fontweight="bold", fontsize=10)
    _legend(figure, axes)
    return figure


def _walk(ax: Any, part: pd.DataFrame, shade: dict[int, Any]) -> None:
    """Draw the views of one run, with a ring around every step at which the objective rose."""
    ring = {"marker": "o", "markersize": 9, "markerfacecolor": "none", "linestyle": "none"}
    for view, line in part.groupby("view"):
        if len(line) < 2:  # the first view takes one step
            continue
        x, y = line["iteration"].to_numpy(), line["change"].to_numpy(float)
        look = {"marker": _MARKERS[view % len(_MARKERS)], "markevery": max(1, len(x) // 12)}
        look |= {"color": shade[view], "linestyle": _LINES[view % len(_LINES)], "markersize": 4}
        ax.plot(x, y, label=f"view {view + 1}", **look)
        rose = line["rose"].to_numpy(bool)
        if rose.any():
            ax.plot(x[rose], y[rose], markeredgecolor=_COLORS[1], label="objective rose", **ring)


def _scale(data: Data, looks: dict[str, dict[str, Any]]) -> Figure:
    """Draw time and memory over the number of samples, both axes logarithmic, with slopes."""
    rows = tables.scale(data)
    panels = (("cpu_seconds", 1, "CPU seconds"), ("peak_bytes", 1e6, "memory beyond the data (MB)"))
    figure, axes = _figure(1, 2, 10.5, 4.4)
    for ax, (column, unit, label) in zip(axes.flat, panels, strict=True):
        for name in tables.methods(rows):
            part = rows[rows["method"] == name]
            value = part[column] / unit
            done = part.assign(value=value)[value > 0]
            ax.plot(
                done["n_samples"], done["value"], label=_slope(name, done), **_line(looks[name])
            )
            _mark_ends(ax, part, looks[name])
        ax.set(xscale="log", yscale="log", xlabel="samples", ylabel=label)
        _plain(ax.xaxis)
        _plain(ax.yaxis)
        ax.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16), handlelength=3)
    return figure


def _slope(name: str, done: pd.DataFrame) -> str:
    from viewfold_research.bench.results import slope

    if done["n_samples"].nunique() < 2:
        return name
    return f"{name}: slope {slope(done['n_samples'], done['value']):.2f}"


def _mark_ends(ax: Any, part: pd.DataFrame, look: dict[str, Any]) -> None:
    """Put a cross at the foot of the panel where a method did not come to an end."""
    bad, foot = part[part["cpu_seconds"].isna()], ax.get_xaxis_transform()
    cross = {"marker": "x", "markersize": 8, "markeredgewidth": 2, "linestyle": "none"}
    for n, note in zip(bad["n_samples"], bad["note"], strict=True):
        ax.plot(n, 0.03, color=look["color"], transform=foot, **cross)
        words = {"color": look["color"], "size": 7.5, "ha": "right", "va": "center"}
        ax.annotate(_why(note), (n, 0.03), (-7, 0), foot, "offset points", **words)
