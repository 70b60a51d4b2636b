"""What differs between two state files: the command diff, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewfold.app.states import folded_table
from viewfold.cli import _options as opt
from viewfold.cli._files import ids_of
from viewfold.cli._moved import Limit
from viewfold.cli.command import argument
from viewfold.cli.console import notes, print_json, print_rows, say

if TYPE_CHECKING:
    from viewfold.explain.events import ClusterEvent, Difference


@argument("old", metavar="OLD.vf", type=opt.StatePath(), help="First state.")
@argument("new", metavar="NEW.vf", type=opt.StatePath(), help="Second state.")
@opt.max_moved
@opt.as_json
def diff(old: Path, new: Path, max_moved: str | None, as_json: bool) -> None:
    """Compare two states: samples, who moved, events and views.

    If one file is a later state of the other, clusters have the same numbers in both; otherwise
    they are matched by the samples that they share.
    """
    from viewfold.explain.events import difference, one_story
    from viewfold.store import queries

    limit = Limit(max_moved)
    (was, log, views), (now, later, more) = (queries.clustering(path) for path in (old, new))
    tables = folded_table(old, was), folded_table(new, now)
    before, after = ((ids_of(table), table["cluster"]) for table in tables)
    found = difference(before, after, same_numbers=one_story(log, later))
    limit.moved, limit.known = found.n_moved, found.n_both
    facts: dict[str, Any] = {"old": str(old), "new": str(new), **_facts(found)}
    facts["views_added"] = [name for name in more if name not in views]
    facts["views_gone"] = [name for name in views if name not in more]
    facts |= {} if max_moved is None else {"too_many_moved": limit.exceeded}
    if as_json:
        print_json({**facts, "notes": notes} if notes else facts)
    else:
        _say(facts)
    limit.end()


def _facts(found: Difference) -> dict[str, Any]:
    rand = found.adjusted_rand
    return {
        "samples": {"both": found.n_both, "only_old": found.n_gone, "only_new": found.n_new},
        "same_numbers": found.numbers is None,
        "numbers": found.numbers,
        "moved": found.n_moved,
        "share_moved": round(found.n_moved / found.n_both, 4) if found.n_both else None,
        "adjusted_rand": None if rand is None else round(rand, 4),
        "events": [_row(event) for event in found.events],
    }


def _row(event: ClusterEvent) -> dict[str, Any]:
    """Return an event as a row of a table; it belongs to no step."""
    return {name: value for name, value in vars(event).items() if name not in ("entry", "step")}


def _say(facts: dict[str, Any]) -> None:
    """Say it to a person; events are data."""
    counts = facts["samples"]
    say(
        f"{counts['both']:,} samples are in both, {counts['only_old']:,} only in {facts['old']}, "
        f"{counts['only_new']:,} only in {facts['new']}."
    )
    for what in ("added", "gone"):
        if facts[f"views_{what}"]:
            say(f"views {what}: {', '.join(facts[f'views_{what}'])}")
    if counts["both"]:
        how = "The files have one log, so that clusters have the same numbers"
        if not facts["same_numbers"]:
            pairs = ", ".join(f"{a} is {b}" for a, b in facts["numbers"].items())
            how = f"The files have different logs, so that clusters were matched ({pairs})"
        say(
            f"{how}: {facts['moved']:,} samples ({100 * facts['share_moved']:.1f} %) have another "
            f"cluster, adjusted Rand index {facts['adjusted_rand']:.3f}."
        )
    if facts["events"]:
        print_rows(facts["events"])
