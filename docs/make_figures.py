"""Draw docs/figures/fold-steps.svg, wines.svg and memory.svg: `python docs/make_figures.py`.

The first is a scheme. The second are the wines of the tour, view by view and in the consensus; the
third is what two methods still know of views that were folded earlier.
"""

import re
import runpy
from io import StringIO
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.decomposition import PCA

from viewfold import FCMVC, ViewFold, datasets
from viewfold.plot import COLOURS

HERE = Path(__file__).parent
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "viewfold",
    "font.family": "sans-serif",
    "font.size": 9,
}


def save(figure: plt.Figure, name: str) -> None:
    """Write a figure without the time of day, so that the same data give the same file."""
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    lines = (line.rstrip() for line in text.getvalue().splitlines())
    svg = re.sub(r"font: ([^;']*)'[^;\"]*", r"font: \1sans-serif", "\n".join(lines))
    (HERE / "figures" / name).write_text(svg + "\n", encoding="utf-8")


# ---- a fold in four steps -----------------------------------------------------------------------


def fold_steps() -> None:
    """Draw matrices: rows are samples, what a sample lacks is hatched."""
    blue, grey = COLOURS[0], "#56607a"
    figure, ax = plt.subplots(figsize=(8.6, 3.3), layout="constrained")
    ax.set(xlim=(0, 86), ylim=(3, 36), aspect="equal")
    ax.axis("off")

    def box(x: float, y: float, w: float, h: float, colour: str | None) -> None:
        how = {"facecolor": colour} if colour else {"facecolor": "#f4f4f4", "hatch": "////"}
        ax.add_patch(
            plt.Rectangle((x, y), w, h, edgecolor="#ffffff" if colour else "#c4c4c4", lw=0.8, **how)
        )

    def say(x: float, y: float, text: str, **how: object) -> None:
        ax.text(x, y, text, ha="center", va="center", **{"size": 12, **how})

    def arrow(x: float, to: float) -> None:
        ax.annotate("", (to, 18), (x, 18), arrowprops={"arrowstyle": "-|>", "color": "#444"})

    for x, title in (
        (8, "1 describe"),
        (30, "2 join by id"),
        (55, "3 weigh, merge"),
        (77, "4 cluster"),
    ):
        say(x, 34, title, weight="bold", size=12.5)
    box(1, 12, 9, 14, blue)
    arrow(10.4, 12.6)
    box(13, 12, 3, 14, blue)
    say(5.5, 9.5, "view")
    say(14.5, 9.5, "features")
    arrow(17, 21)
    box(22, 12, 3, 14, blue)
    box(22, 6, 3, 6, None)
    box(31, 20, 6, 6, None)
    box(31, 6, 6, 14, grey)
    say(23.5, 28, "view")
    say(34, 28, "consensus")
    for y, text in ((23, "new"), (16, "shared"), (9, "known")):
        say(28, y, text, size=10, color="#555")
    arrow(38, 42)
    box(43, 12, 3, 14, blue)
    box(43, 6, 3, 6, "#a8cbe3")
    box(47, 20, 6, 6, "#a9afbd")
    box(47, 6, 6, 14, grey)
    say(48, 28, "completed (pale)")
    arrow(54, 58)
    box(59, 6, 6, 20, "#3d5a80")
    say(62, 28, "consensus")
    arrow(66, 72)
    for y, h, colour in ((20, 6, COLOURS[3]), (13, 7, COLOURS[4]), (6, 7, COLOURS[5])):
        box(73, y, 6, h, colour)
    say(76, 28, "clusters")
    save(figure, "fold-steps.svg")


# ---- wines --------------------------------------------------------------------------------------


def wines() -> None:
    """Draw the bottles in the principal components of each view, and of the consensus."""
    made = runpy.run_path(str(HERE / "start" / "make_wines.py"))
    rng = np.random.default_rng(0)
    views = {}
    for view, columns in made["VIEWS"].items():
        gone = rng.choice(made["table"].index, made["MISSING"][view], replace=False)
        views[view] = made["table"][columns].drop(gone)
    model = ViewFold(3, random_state=0)
    for view, rows in views.items():
        model.partial_fit(rows, view=view)
    consensus = model.embedding_ / np.linalg.norm(model.embedding_, axis=1, keepdims=True)
    panels = {**views, "consensus of all three": pd.DataFrame(consensus, model.ids_)}

    figure, axes = plt.subplots(1, 4, figsize=(8.6, 2.4), layout="constrained")
    for ax, (name, rows) in zip(axes, panels.items(), strict=True):
        spread = rows.std() if name in views else 1
        points = PCA(2).fit_transform((rows - rows.mean()) / spread)
        for c, shape in enumerate("os^"):
            own = (made["cultivar"][rows.index] == c).to_numpy()
            ax.plot(*points[own].T, shape, color=COLOURS[c], ms=3, mew=0, alpha=0.8)
        ax.set(xticks=[], yticks=[], xlabel=f"{len(rows)} bottles")
        ax.set_title(name, weight="bold" if name not in views else None, size=9)
        ax.spines[:].set_color("#cccccc")
    save(figure, "wines.svg")


# ---- what is left of earlier views --------------------------------------------------------------


def memory() -> None:
    """Draw the share of each view's variance that the consensus explains after all folds."""
    views = datasets.load_digits_views().views
    figure, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
    for offset, method, colour in ((-0.2, ViewFold, COLOURS[0]), (0.2, FCMVC, COLOURS[1])):
        model = method(10, random_state=0)
        for name, X in views.items():
            model.partial_fit(X, view=name)
        told = model.variance()["consensus"]
        ax.bar(np.arange(len(told)) + offset, told, 0.38, color=colour, label=method.__name__)
        print(method.__name__, told.round(2).to_dict())
    ax.set_xticks(range(len(views)), list(views))
    ax.set(ylabel="share explained", xlabel="views of digits, in the order of the folds")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="upper left", ncols=2)
    ax.set_ylim(0, 1.15)
    save(figure, "memory.svg")


if __name__ == "__main__":
    with mpl.rc_context(STYLE):
        fold_steps()
        wines()
        memory()
