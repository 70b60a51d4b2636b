"""The command line: files in, one line about what happened, data on standard output.

Every command is a few lines around the library. Only typer is imported before a command runs, so
that ``viewfold --help`` answers at once.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewfold import __version__
from viewfold.bench.cli import app as bench

if TYPE_CHECKING:
    import pandas as pd

    from viewfold.estimators import FoldingEstimator
    from viewfold.view import View

app = typer.Typer(
    name="viewfold",
    help="Cluster samples whose views arrive one after the other, with gaps, and are then gone.",
    epilog="Begin with: viewfold add patients.vf labs.csv --id patient --clusters 10",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(bench, name="bench", help="The paper's experiments, on your data.")


class Method(StrEnum):
    """The estimators, by the names that the command line has for them."""

    viewfold = "viewfold"
    fcmvc = "fcmvc"


State = Annotated[Path, typer.Argument(metavar="STATE.vf", help="The state file.")]
Id = Annotated[
    str | None,
    typer.Option("--id", help="The column that holds the sample ids.", metavar="COLUMN"),
]
ViewName = Annotated[
    str | None,
    typer.Option(
        "--view",
        help="What the view is called (the file's name if not given); of a file that holds "
        "several views, the one to take.",
        metavar="NAME",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
Wait = Annotated[float, typer.Option("--wait", help="Seconds to wait for another writer.", min=0)]
Clusters = Annotated[int | None, typer.Option("--clusters", "-k", help="How many clusters.", min=1)]
Kind = Annotated[Method, typer.Option("--method", help="ViewFold, or the paper's FCMVC-IV.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything that is random.", min=0)]
Private = Annotated[
    bool,
    typer.Option("--private", help="Keep nothing that a view could be rebuilt from; no predict."),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="Write here (.csv, .tsv, .parquet, .jsonl) instead."),
]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"viewfold {__version__}")
        raise typer.Exit


@app.command(epilog="Example: viewfold init patients.vf --clusters 10")
def init(
    state: State,
    clusters: Annotated[int, typer.Option("--clusters", "-k", help="How many clusters.", min=1)],
    method: Kind = Method.viewfold,
    seed: Seed = 0,
    private: Private = False,
    as_json: Json = False,
) -> None:
    """Make an empty state file."""
    if state.exists():
        raise ValueError(f"{state} exists. Choose another name, or add views to it.")
    _new_model(clusters, method, seed, private).save(state)
    _tell(
        as_json,
        {"file": str(state), "method": method.value, "clusters": clusters, "private": private},
        f"{state} is ready for its first view: viewfold add {state} FILE --id COLUMN",
    )


@app.command(epilog="Example: viewfold add patients.vf labs.parquet --id patient --clusters 10")
def add(
    state: State,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The view: a file, folder or glob.")],
    id_column: Id = None,
    view: ViewName = None,
    clusters: Clusters = None,
    method: Kind = Method.viewfold,
    seed: Seed = 0,
    private: Private = False,
    wait: Wait = 60,
    as_json: Json = False,
) -> None:
    """Fold a view into a state file, which is made if it is not there.

    The view is not needed afterwards. CSV, TSV, Parquet, Arrow, JSON lines, NumPy, MATLAB, AnnData,
    MuData and Matrix Market files are read; of a file that holds several views, all are folded.
    """
    from viewfold.estimators import edit

    started = perf_counter()
    new = None
    if not state.exists():
        if clusters is None:
            raise ValueError(f"There is no {state} yet. To make it, say how many --clusters.")
        new = _new_model(clusters, method, seed, private)
    with _progress(f"reading {file}") as step:
        views = _read(file, id_column, view)
        step(f"waiting for {state}")
        with edit(state, new=new, wait=wait) as model:
            if clusters is not None:
                model.set_params(n_clusters=clusters)
            if private:
                model.set_params(keep_encoders=False)
            folds = []
            for one in views:
                step(f"folding {one.name}")
                model.partial_fit(one)
                folds.append(_fold_summary(model))
            step(f"writing {state}")
    for fold in folds:
        _say(_fold_line(fold))
    seconds = round(perf_counter() - started, 3)
    _tell(
        as_json,
        {"file": str(state), "folds": folds, "clusters": model.n_clusters, "seconds": seconds},
        f"{model.ids_.size:,} samples in {model.n_clusters} clusters; views folded: "
        f"{len(model.views_)} ({seconds:.1f} s).",
    )


@app.command(epilog="Example: viewfold labels patients.vf -o clusters.csv")
def labels(state: State, output: Output = None, as_json: Json = False) -> None:
    """Print the cluster of every sample, with its confidence and number of views."""
    _deliver(_folded(state, _load(state)).to_frame(), output, as_json)


@app.command(epilog="Example: viewfold status patients.vf")
def status(state: State, as_json: Json = False) -> None:
    """Tell what a state file holds."""
    model = _load(state)
    fitted = hasattr(model, "labels_")
    sizes = [int(size) for size in _sizes(model)] if fitted else []
    facts: dict[str, Any] = {
        "file": str(state),
        "bytes": state.stat().st_size,
        "method": type(model).__name__,
        "clusters": model.n_clusters,
        "samples": sum(sizes),
        "cluster_sizes": sizes,
        "private": not model.keep_encoders,
        "views": [_view_facts(model, i) for i in range(len(model.views_))] if fitted else [],
    }
    if as_json:
        _print_json(facts)
        return
    typer.echo(
        f"{state}: {facts['method']}, {facts['samples']:,} samples in {model.n_clusters} clusters, "
        f"{state.stat().st_size / 1e6:.1f} MB"
    )
    if fitted:
        typer.echo("cluster sizes: " + ", ".join(f"{i}: {n:,}" for i, n in enumerate(sizes)))
        _print_table(facts["views"])
    else:
        typer.echo("no view yet")


@app.command(epilog="Example: viewfold predict patients.vf new.csv --id patient --view labs")
def predict(
    state: State,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Rows with a known view's columns.")],
    id_column: Id = None,
    view: ViewName = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Print the cluster of samples that were never folded; the file stays as it is."""
    model = _load(state)
    with _progress(f"reading {file}"):
        (rows,) = _read(file, id_column, _known(model, view))
        frame = model.predict_frame(rows, view=rows.name)
    _deliver(frame, output, as_json)


@app.command(epilog="Example: viewfold extend patients.vf new.csv --id patient --view labs")
def extend(
    state: State,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Rows with a known view's columns.")],
    id_column: Id = None,
    view: ViewName = None,
    wait: Wait = 60,
    as_json: Json = False,
) -> None:
    """Add new samples of a known view. Nobody else moves."""
    from viewfold.estimators import edit

    with _progress(f"reading {file}"), edit(state, wait=wait) as model:
        (rows,) = _read(file, id_column, _known(model, view))
        model.extend(rows, view=rows.name)
    _tell(
        as_json,
        {"file": str(state), "view": rows.name, "new": len(rows.ids), "samples": model.ids_.size},
        f"{len(rows.ids):,} samples of {rows.name} are new; {model.ids_.size:,} in all.",
    )


@app.command(epilog="Example: viewfold forget patients.vf p17 p42")
def forget(
    state: State,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Samples.")] = None,
    listed: Annotated[
        Path | None, typer.Option("--from", help="A text file with one id per line.")
    ] = None,
    wait: Wait = 60,
    as_json: Json = False,
) -> None:
    """Remove samples for good: from the state, its history, and what undo returns to."""
    from viewfold.estimators import edit

    gone = list(ids or [])
    if listed is not None:
        gone += [line.strip() for line in listed.read_text().splitlines() if line.strip()]
    if not gone:
        raise ValueError("Whom? Give ids, or a file of ids with --from.")
    with edit(state, wait=wait) as model:
        model.forget(_as_known(model, gone))
    _tell(
        as_json,
        {"file": str(state), "forgotten": len(set(gone)), "samples": int(model.ids_.size)},
        f"{len(set(gone)):,} samples are forgotten; {model.ids_.size:,} are left.",
    )


@app.command(epilog="Example: viewfold undo patients.vf")
def undo(state: State, wait: Wait = 60, as_json: Json = False) -> None:
    """Take the last add or extend back. One step can be taken back."""
    from viewfold.estimators import undo as take_back

    model = take_back(state, wait=wait)
    names = [record.name for record in model.views_] if hasattr(model, "labels_") else []
    samples = int(model.ids_.size) if names else 0
    _tell(
        as_json,
        {"file": str(state), "views": names, "samples": samples},
        f"{state} is back at {samples:,} samples and the views {', '.join(names) or '(none)'}.",
    )


@app.command(epilog="Example: viewfold history patients.vf --id p17")
def history(
    state: State,
    sample: Annotated[
        str | None, typer.Option("--id", help="One sample's way.", metavar="ID")
    ] = None,
    moved: Annotated[
        str | None, typer.Option("--moved", help="Who moved when this view came.", metavar="VIEW")
    ] = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Tell what every fold did, where one sample went, or who moved when."""
    from viewfold import store
    from viewfold.estimators import model_of

    saved = store.read(state)
    assert saved is not None
    model = _folded(state, model_of(saved))
    if moved is not None:
        _deliver(model.movers(moved), output, as_json)
        return
    rows = [
        {**_fold_summary(model, i), "folded": saved.folded[record.name].isoformat(" ", "seconds")}
        for i, record in enumerate(model.views_)
    ]
    if sample is not None:
        way = model.history_.loc[_as_known(model, [sample])[0]]
        seen = model.seen_.loc[way.name]
        rows = [
            {"view": row["view"], "folded": row["folded"], "in_view": bool(here), "cluster": int(c)}
            for row, here, c in zip(rows, seen, way, strict=True)
            if c >= 0
        ]
    if output is not None:
        import pandas as pd

        _deliver(pd.DataFrame(rows).set_index("view"), output, as_json)
    elif as_json:
        _print_json(rows)
    else:
        _print_table(rows)


@app.command(epilog="Example: viewfold report patients.vf -o report.html")
def report(
    state: State,
    output: Annotated[Path, typer.Option("-o", "--output", help="The page.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option("--title", help="Its title.")] = None,
    as_json: Json = False,
) -> None:
    """Write a page that shows the clusters; it opens offline."""
    from viewfold.report import write

    with _progress(f"drawing {output}"):
        model = _folded(state, _load(state))
        write(model, output, title=title or state.stem)
    size = output.stat().st_size
    _tell(
        as_json, {"file": str(output), "bytes": size}, f"{output} is written ({size / 1e6:.1f} MB)."
    )


@app.command(epilog="Example: viewfold export patients.vf -o patients.parquet")
def export(
    state: State,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="A .parquet, .csv, .tsv or .jsonl file.")
    ],
    as_json: Json = False,
) -> None:
    """Write everything known of every sample: cluster, confidence, views, history, embedding."""
    import pandas as pd

    model = _folded(state, _load(state))
    embedding = pd.DataFrame(model.embedding_, index=model.seen_.index).add_prefix("z")
    seen, past = model.seen_.add_prefix("in_"), model.history_.add_prefix("cluster_after_")
    frame = pd.concat([model.to_frame(), seen, past, embedding], axis=1)
    _write_frame(frame, output)
    _tell(
        as_json,
        {"file": str(output), "samples": len(frame), "columns": frame.columns.tolist()},
        f"{output} is written: {len(frame):,} samples, {frame.shape[1]} columns.",
    )


@app.command(epilog="Example: viewfold datasets --json")
def datasets(as_json: Json = False) -> None:
    """List the paper's data sets: what is known of each, and where to get it."""
    from dataclasses import asdict

    from viewfold.datasets import catalogue

    rows = [asdict(entry) for entry in catalogue()]
    if as_json:
        _print_json(rows)
        return
    sizes = ("name", "samples", "views", "classes", "features")
    _print_table([{name: row[name] for name in sizes} for row in rows])
    for row in rows:
        typer.echo(f"\n{row['name']}: {row['address']}\n  {row['note']}")


@app.command(epilog="Example: viewfold demo /tmp/try")
def demo(
    folder: Annotated[Path, typer.Argument(help="Where to leave the results.")] = Path("."),
    as_json: Json = False,
) -> None:
    """Fold six views of handwritten digits, with samples missing; leave labels and a report."""
    from contextlib import redirect_stdout

    from viewfold.demo import tell

    if not as_json:
        tell(folder)
        return
    with redirect_stdout(sys.stderr):
        accuracy = tell(folder)
    _print_json({"folder": str(folder), "accuracy": round(accuracy, 4)})


# -- reading


def _new_model(clusters: int, method: Method, seed: int, private: bool) -> FoldingEstimator:
    from viewfold.estimators import FCMVC, ViewFold

    kind = ViewFold if method is Method.viewfold else FCMVC
    return kind(clusters, random_state=seed, keep_encoders=not private)


def _load(state: Path) -> FoldingEstimator:
    from viewfold.estimators import load

    return load(state)


def _folded(state: Path, model: FoldingEstimator) -> FoldingEstimator:
    """Return the model, if there is anything in it."""
    if not hasattr(model, "labels_"):
        raise ValueError(f"{state} is empty: no view was folded yet. Add one with viewfold add.")
    return model


def _read(file: str, id_column: str | None, name: str | None) -> list[View]:
    """Return the views of a file; one of them, if a name is given."""
    from dataclasses import replace

    from viewfold.view import as_views

    views = as_views(file, ids=id_column)
    if name is None:
        return views
    if len(views) == 1:
        return [replace(views[0], name=name)]
    chosen = [view for view in views if view.name == name]
    if not chosen:
        names = ", ".join(str(view.name) for view in views)
        raise ValueError(f"{file} has no view {name!r}; it holds {names}. Choose one with --view.")
    return chosen


def _known(model: FoldingEstimator, view: str | None) -> str:
    """Return the name of the view that rows belong to."""
    if not hasattr(model, "labels_"):
        raise ValueError("No view was folded yet: nothing is known about any.")
    names = [record.name for record in model.views_]
    if view is None and len(names) > 1:
        raise ValueError(f"Which view do the rows belong to? Pass --view, one of {names}.")
    if view is not None and view not in names:
        raise ValueError(f"There is no view {view!r}; the file holds {names}.")
    return view or names[0]


def _as_known(model: FoldingEstimator, ids: list[str]) -> list[Any]:
    """Return ids from the command line as the model knows them: as numbers, if it does."""
    known = set(model.ids_.tolist())
    found = [i if i in known else int(i) if i.lstrip("-").isdecimal() else i for i in ids]
    unknown = [i for i in found if i not in known]
    if unknown:
        raise ValueError(f"Unknown samples: {unknown[:5]}. Nothing was done.")
    return found


# -- what a person wants to know


def _fold_summary(model: FoldingEstimator, which: int = -1) -> dict[str, Any]:
    """Return who came, who was there before, and who moved."""
    i = which % len(model.views_)
    record = model.views_[i]
    known, seen = model.history_.iloc[:, i] >= 0, model.seen_.iloc[:, i]
    return {
        "view": record.name,
        "samples": record.n_samples,
        "features": record.n_features,
        "new": record.n_new,
        "shared": record.n_shared,
        "unseen": int((known & ~seen).sum()),
        "moved": len(model.movers(i)),
    }


def _fold_line(fold: dict[str, Any]) -> str:
    return (
        "{view}: {samples:,} samples × {features:,} features; {new:,} new, {shared:,} shared, "
        "{unseen:,} known ones not in it; {moved:,} changed cluster."
    ).format(**fold)


def _view_facts(model: FoldingEstimator, which: int) -> dict[str, Any]:
    agreement = model.views_[which].agreement
    return {
        **_fold_summary(model, which),
        "agreement": None if agreement is None else round(agreement, 3),
    }


def _sizes(model: FoldingEstimator) -> Any:
    import numpy as np

    return np.bincount(model.labels_, minlength=model.n_clusters)


# -- writing


def _deliver(frame: pd.DataFrame, output: Path | None, as_json: bool) -> None:
    """Write a table to a file, or to standard output as CSV or JSON."""
    if output is not None:
        _write_frame(frame, output)
        _tell(
            as_json,
            {"file": str(output), "samples": len(frame)},
            f"{output} is written: {len(frame):,} rows.",
        )
    elif as_json:
        _print_json(frame.reset_index().to_dict("records"))
    else:
        frame.to_csv(sys.stdout)


def _write_frame(frame: pd.DataFrame, output: Path) -> None:
    writers = {
        ".csv": frame.to_csv,
        ".tsv": lambda path: frame.to_csv(path, sep="\t"),
        ".parquet": lambda path: frame.reset_index().to_parquet(path, index=False),
        ".jsonl": lambda path: frame.reset_index().to_json(path, orient="records", lines=True),
    }
    if output.suffix not in writers:
        known = ", ".join(writers)
        raise ValueError(f"Cannot write {output}: its name should end with one of {known}.")
    if not output.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {output.parent}. Make it first.")
    writers[output.suffix](output)


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _tell(as_json: bool, facts: dict[str, Any], line: str) -> None:
    """Say what happened: to a person, or to a program."""
    _print_json(facts) if as_json else _say(line)


def _print_json(facts: Any) -> None:
    typer.echo(json.dumps(facts, default=lambda value: value.item(), ensure_ascii=False))


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name, value in rows[0].items():
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*("–" if value is None else _shown(value) for value in row.values()))
    Console(soft_wrap=not sys.stdout.isatty(), highlight=False, markup=False).print(table)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


@contextmanager
def _progress(doing: str) -> Iterator[Any]:
    """Show on a terminal what is being done, and for how long."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda step: bar.update(task, description=step)


def main() -> None:
    """Run the command line; an error is one line, without a traceback."""
    warnings.showwarning = lambda message, *_, **__: _say(f"viewfold: note: {_line(message)}")
    try:
        code = app(standalone_mode=False)
    except (ValueError, OSError, ImportError, MemoryError) as error:
        _say(f"viewfold: {_line(error) or type(error).__name__}")
        code = 1
    except KeyboardInterrupt:
        _say("viewfold: interrupted; nothing was changed.")
        code = 130
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        shown = error.format_message()  # of typer: a wrong option or argument
        _say(shown if "Usage:" in shown else f"viewfold: {_line(shown)} See viewfold --help.")
        code = getattr(error, "exit_code", 2)
    sys.exit(code if isinstance(code, int) else 0)


def _line(message: object) -> str:
    return " ".join(str(message).split())


if __name__ == "__main__":
    main()
