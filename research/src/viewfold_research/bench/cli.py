"""The commands of ``viewfold bench``: the paper's experiments, one command each.

Only click is imported here; what computes is imported by the command that needs it, so that
``--help`` answers at once.
"""

from __future__ import annotations

import json
import os
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from viewfold.cli import Group, say, show_progress
from viewfold_research.bench import _options as opt
from viewfold_research.bench._options import Whole

if TYPE_CHECKING:
    from viewfold_research.bench.run import Report


@click.group("bench", cls=Group, help="The paper's experiments, on your data.")
def app() -> None:
    """Hold the commands."""


@app.command()
@opt.data
@opt.datasets
@opt.methods
@opt.kmeans_runs
@opt.jobs
@opt.out
@opt.seed
@opt.order
@opt.retry
@opt.profile
def complete(**asked: Any) -> None:
    """Cluster complete views: the paper's first table.

    Example: viewfold bench complete --data sets --datasets uci-digit,wiki --jobs 2
    """
    _run("complete", **asked)


@app.command()
@opt.data
@opt.datasets
@opt.methods
@opt.missing(ratios="0.1..0.5", draws=10)
@opt.kmeans_runs
@opt.jobs
@opt.out
@opt.masks
@opt.seed
@opt.order
@opt.retry
@opt.profile
def incomplete(**asked: Any) -> None:
    """Cluster views that lack samples: the paper's second table and its curves over the ratio.

    Example: viewfold bench incomplete --data sets --ratios 0.1,0.3 --draws 3 --masks my-masks.npz
    """
    _run("incomplete", **asked)


@app.command()
@opt.data
@opt.datasets
@opt.methods
@opt.missing(ratios="0..0.5", draws=1)
@opt.out
@opt.masks
@opt.seed
@opt.order
@opt.limits()
@opt.retry
@opt.profile
def time(**asked: Any) -> None:
    """Measure CPU and wall time and memory, from the first view to labels.

    One method at a time runs, on one thread, in a process of its own; the time includes one run of
    k-means for methods that end with an embedding.

    Example: viewfold bench time --data sets --datasets uci-digit --draws 3
    """
    _run("time", **asked)


@app.command()
@opt.data
@opt.datasets
@opt.methods
@opt.missing(ratios="0", draws=1)
@click.option(
    "--orders", metavar="N", type=Whole(min=1), default=10, help="Orders to try, at most."
)
@opt.kmeans_runs
@opt.jobs
@opt.out
@opt.seed
@opt.retry
@opt.profile
def order(**asked: Any) -> None:
    """Let views arrive in every order, or in ten that are drawn at random.

    Example: viewfold bench order --data sets --datasets uci-digit --methods FCMVC-IV,ViewFold
    """
    _run("order", **asked)


@app.command()
@opt.data
@opt.datasets
@opt.methods
@opt.missing(ratios="0,0.1,0.3,0.5", draws=1)
@opt.jobs
@opt.out
@opt.masks
@opt.seed
@opt.order
@opt.retry
def convergence(**asked: Any) -> None:
    """Follow the objective from iteration to iteration.

    Example: viewfold bench convergence --data sets --datasets wiki --ratios 0,0.5
    """
    _run("convergence", **asked)


@app.command()
@opt.methods
@click.option(
    "--sizes",
    metavar="N,N",
    default="1e4,31623,1e5,316228,1e6",
    help="Numbers of samples.",
)
@opt.missing(ratios="0.3", draws=1)
@opt.out
@opt.seed
@opt.limits()
@opt.retry
@opt.profile
def scale(**asked: Any) -> None:
    """Measure time and memory on synthetic views of ten thousand to a million samples.

    Example: viewfold bench scale --sizes 1e4,1e5 --memory-limit 4
    """
    _run("scale", **asked)


@app.command()
@opt.data
@opt.datasets
@opt.methods
@opt.missing(ratios="0,0.3,0.5", draws=1)
@opt.jobs
@opt.out
@opt.masks
@opt.seed
@opt.order
@opt.limits(memory=6.0, seconds=60)
@opt.retry
@opt.profile
def leaderboard(out: Path, **asked: Any) -> None:
    """Rank all methods on all data sets, and write a page and tables of it.

    One draw of all sets comes before the next, small sets before large ones; what is interrupted
    goes on with the same command, and the page shows what there is.

    Example: viewfold bench leaderboard --data sets --draws 3 --out results
    """
    _run("leaderboard", out=out, **asked)
    from viewfold_research.bench import show as renderer

    click.echo("\n".join(map(str, renderer.write(out, ["html", "csv"]))))


@app.command("methods")
def list_methods() -> None:
    """List the methods that can take part, also those of other packages.

    Example: viewfold bench methods
    """
    from viewfold_research.bench.methods import names

    click.echo("\n".join(names()))


@app.command("datasets")
@click.option("--fetch", metavar="NAME", help="Download this data set, unless it is there.")
@click.option("--folder", type=opt.PATH, help="Where data sets are kept, instead of VIEWFOLD_DATA.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def list_datasets(fetch: str | None, folder: Path | None, as_json: bool) -> None:
    """List public data sets and where to get them, or download one.

    Example: viewfold bench datasets --fetch 3sources
    """
    from viewfold_research import datasets

    if fetch is not None:
        with show_progress(f"fetching {fetch}"):
            held = datasets.fetch(fetch, data_home=folder)
        views = {view: list(map(int, X.shape)) for view, X in held.views.items()}
        if as_json:
            click.echo(json.dumps({"name": fetch, "file": held.filename, "views": views}))
        shapes = ", ".join(f"{view} {n:,} × {d:,}" for view, (n, d) in views.items())
        say(f"{held.filename} has {fetch}: {shapes}.")
        return
    rows = datasets.listed()
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        size = ", ".join(f"{row[what]:,} {what}" for what in ("samples", "views", "classes"))
        can = f"; fetched by --fetch {row['name']}" if row["fetch"] else ""
        click.echo(f"{row['name']}: {size}{can}\n  {row['address']}\n  {row['note']}")


@app.command()
@opt.out
@click.option("--formats", metavar="A,B", help="Which files to write; all if empty.")
def show(out: Path, formats: str | None) -> None:
    """Write tables and figures of all results in a folder.

    Example: viewfold bench show --out bench-results
    """
    from viewfold_research.bench import show as renderer
    from viewfold_research.bench.results import Results

    with Results(out):  # complains about a folder without results, and about one in use
        pass
    chosen = _list(formats)
    written = renderer.write(out, chosen) if chosen else renderer.write(out)
    click.echo("\n".join(map(str, written or [])))


def _run(
    experiment: str, *, out: Path, jobs: int = 1, retry: bool, profile: bool = False, **asked: Any
) -> None:
    from viewfold_research.bench.plan import Options
    from viewfold_research.bench.run import run

    report = run(experiment, Options(**_options(asked)), out, jobs=jobs or _cores(), retry=retry)
    if profile:
        _print_profile(report)
    for cell, status in report.failed:
        where = f"{cell.dataset}, {cell.method}, ratio {cell.ratio:g}, draw {cell.draw}"
        say(f"{where}: {status}")
    known = f", {report.known} were there already" if report.known else ""
    say(f"{report.computed} cells computed{known}; results in {out}")
    _print_table(experiment, out)


def _options(asked: dict[str, Any]) -> dict[str, Any]:
    """Turn what was typed into what `Options` takes."""
    options = dict(asked)
    for name in ("datasets", "methods"):
        if name in options:
            options[name] = tuple(_list(options[name]))
    if "ratios" in options:
        options["ratios"] = tuple(_ratios(options["ratios"]))
    if "sizes" in options:
        options["sizes"] = tuple(_whole_numbers("--sizes", options["sizes"]))
    if options.get("order", "paper") not in ("paper", "file"):
        options["order"] = tuple(_whole_numbers("--order", options["order"]))
    limit = options.pop("memory_limit", None)
    options["memory_limit"] = None if limit is None else int(limit * 1e9)
    return options


def _list(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _ratios(text: str) -> list[float]:
    """Read ``0.1,0.3``, or ``0.1..0.5`` in tenths; decimals, so that 0.15 plus tenths is exact."""
    try:
        found = [Decimal(part) for part in (text.split("..") if ".." in text else _list(text))]
    except InvalidOperation:
        found = []
    if not found or (".." in text and len(found) != 2) or not all(map(Decimal.is_finite, found)):
        raise ValueError(
            f"--ratios takes numbers with commas between them, or 0.1..0.5 in tenths; got {text!r}."
        )
    if ".." in text:
        first, last = found
        steps = 10 * (last - first)
        if steps < 0 or steps % 1:
            raise ValueError(
                f"--ratios {text} goes in tenths, and {last} is not a whole number of tenths above "
                f"{first}. Write the ratios with commas between them."
            )
        found = [first + Decimal(tenths) / 10 for tenths in range(int(steps) + 1)]
    return [float(ratio) for ratio in found]


def _whole_numbers(option: str, text: str) -> list[int]:
    """Read ``1,2,0`` or ``1e4,31623``."""
    try:
        found = [float(part) for part in _list(text)]
    except ValueError:
        found = []
    if not found or not all(number.is_integer() for number in found):
        raise ValueError(f"{option} takes whole numbers with commas between them; got {text!r}.")
    return [int(number) for number in found]


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _print_table(experiment: str, out: Path) -> None:
    from viewfold_research.bench import show as renderer

    made = renderer.tables(out).get("ranks" if experiment == "leaderboard" else experiment)
    if made is not None:
        told = [name for name in made if name != "source" and not made[name].isin(["", None]).all()]
        click.echo(made[told].to_string(index=False, float_format="{:.4g}".format, na_rep=""))


def _print_profile(report: Report) -> None:
    kinds = ("method", "k-means", "scores")
    say("CPU seconds: " + ", ".join(kinds))
    for dataset, method in dict.fromkeys(key[:2] for key in report.phases):
        spent = [report.phases.get((dataset, method, kind), 0.0) for kind in kinds]
        line = " ".join(f"{seconds:9.2f}" for seconds in spent)
        say(f"{dataset:16} {method:24} {line}")
