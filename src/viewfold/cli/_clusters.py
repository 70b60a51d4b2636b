"""Commands about the number of clusters: suggest one, and find so many in a state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from viewfold.app import numbers
from viewfold.app.numbers import evidence
from viewfold.app.states import check_folded, folded_model
from viewfold.cli import _options as opt
from viewfold.cli._engine import works
from viewfold.cli._files import check_output, deliver
from viewfold.cli.command import Whole, argument
from viewfold.cli.console import print_json, print_rows, progress, say, tell

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator


@opt.state
@click.option("--range", "between", metavar="A-B", help="Numbers to choose from.")
@opt.output
@opt.raw
@opt.as_json
@works
def suggest(
    state: Path, between: str | None, output: Path | None, raw: bool, as_json: bool
) -> None:
    """Suggest a number of clusters, and show how much each number stands out."""
    check_output(output, state)
    wanted = None if between is None else _between(between)
    with progress(f"looking at {state}"):
        model = folded_model(state)
        found = numbers.suggestion(model, wanted)
    facts = numbers.suggested(model, found)
    rows = facts["scores"]
    if output is not None:
        from viewfold._util.table import Table

        deliver(Table.of_rows(rows), output, as_json, state, raw=raw)
    elif as_json:
        print_json({"file": str(state), **facts})
    else:
        print_rows(rows)
    if not as_json:
        say(f"{evidence(found)} {state} has {model.n_clusters}.")


@opt.state
@opt.clusters(required=True)
@opt.keep
@opt.wait
@opt.as_json
@works
def recluster(state: Path, clusters: int, keep: int | None, wait: float, as_json: bool) -> None:
    """Find another number of clusters in the same embedding.

    Clusters that stay keep their numbers. undo takes it back.
    """
    from viewfold.store import edit

    with progress(f"looking at {state}"), edit(state, keep=keep, wait=wait) as model:
        facts, chosen = numbers.recluster(check_folded(state, model), clusters)
    if chosen is not None:
        say(evidence(chosen))
    tell(
        as_json,
        {"file": str(state), **facts},
        f"{model.n_samples_:,} samples in {model.n_clusters} clusters; there were "
        f"{facts['before']}. {facts['moved']:,} have another cluster now.",
    )


@opt.state
@argument("cluster", metavar="CLUSTER", type=Whole(min=0), help="Number of the cluster.")
@argument("name", metavar="NAME", help="Name of the cluster; '' removes it.")
@opt.keep
@opt.wait
@opt.as_json
def rename(
    state: Path, cluster: int, name: str, keep: int | None, wait: float, as_json: bool
) -> None:
    """Give a cluster a name.

    The name is shown wherever the cluster is, and stays with it from fold to fold. undo takes it
    back.
    """
    from viewfold.store import edit

    with edit(state, keep=keep, wait=wait) as model:
        check_folded(state, model).rename(cluster, name)
    tell(
        as_json,
        {"file": str(state), "cluster": cluster, "cluster_names": model.cluster_names_},
        f"Cluster {cluster} is {name!r} now." if name else f"Cluster {cluster} has no name now.",
    )


def resampled(model: FoldingEstimator) -> dict[str, Any]:
    """Return how stable each cluster is, as rows of a table, and which should not be trusted."""
    found = model.stability().round({"stability": 3}).reset_index()
    rows = found.astype(object).where(found.notna(), None).to_dict("records")
    return {"stability": rows, "untrusted": found["cluster"][~found["trusted"]].tolist()}


def not_trusted(untrusted: list[int]) -> str:
    """Say which clusters should not be trusted."""
    if not untrusted:
        return "All clusters are found again in resampled rows."
    named = ", ".join(map(str, untrusted))
    return (
        f"Not to be trusted, as they are not found again in resampled rows: clusters {named}. "
        "Ask viewfold suggest for another number of clusters."
    )


def _between(text: str) -> range:
    """Return the numbers of a range as one writes it."""
    first, dash, last = text.partition("-")
    if not dash or not first.strip().isdecimal() or not last.strip().isdecimal():
        raise ValueError(f"--range {text!r} is no range. Give one such as 2-30.")
    if int(first) > int(last):
        raise ValueError(
            f"--range {text!r} is reversed: give the smaller number first, {last.strip()}-"
            f"{first.strip()}."
        )
    return range(int(first), int(last) + 1)
