"""Answers from a state on disk without making the model: by SQL, and only what is needed.

Every answer is checked: the columns and tables that it comes from are compared with their digests.
`viewfold.verify` and `viewfold.load` compare all of them. Several answers can share one opening.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from viewfold._util import constants
from viewfold._util.table import Table
from viewfold.errors import UnreadableError
from viewfold.state.log import Log
from viewfold.store import Contents, StrPath, store_of
from viewfold.store.check import cluster_names
from viewfold.store.tables import SMALL, events_of, parts_of, small_table, table_of, time_of

if TYPE_CHECKING:
    import duckdb

    from viewfold.explain.events import ClusterEvent

Source = StrPath | Contents

# A refresh of a view pays if so much of it came since it was learned, and if it has drifted, or one
# of its columns has by so many standard deviations.
STALE, SHIFTED = 0.1, 0.5
MOST_DRIFTED = 3  # columns of a view that a status names
MOST_CLUSTERS = 10**6  # a file that says it has more is not believed
N_SEEN = "list_sum(views_seen::INTEGER[])::INTEGER"
# The share of known rows that are less unlike; see `viewfold.state.novelty`.
NOVELTY = "CASE WHEN novelty > 0 THEN 1 - pow(10, (1 - novelty::INTEGER % 128) / 12)::FLOAT END"

# The log with, for every entry, the column of `history` that holds the labels of then.
STEPS = """
SELECT l.*, s.step, s.entry AS written, v.fold
FROM log l ASOF JOIN steps s ON l.entry >= s.entry LEFT JOIN views v ON v.name = l.view
"""


@contextmanager
def opened(
    source: Source, *columns: str, small: Sequence[str] = ("views", "log", "steps")
) -> Iterator[tuple[duckdb.DuckDBPyConnection, dict[str, Any]]]:
    """Open a state for SQL about these columns of ``samples`` and other tables, which are checked.

    Also give what ``meta`` says.
    """
    if isinstance(source, Contents):
        with source.query(columns, small) as found:
            yield found
        return
    with store_of(source).reading() as contents, contents.query(columns, small) as found:
        yield found


def _mixed(meta: dict[str, Any]) -> str:
    return ", id_is_int" if meta.get("ids") == "mixed" else ""


def labels(source: Source) -> Table | None:
    """Return the cluster of every sample, and how far to trust it; None of an empty file."""
    return _labels_and(source, novelty=NOVELTY, hangs_on="hangs_on", views_seen=N_SEEN)


def embedded(source: Source) -> Table | None:
    """Return id, cluster, confidence and embedding of every sample; None of an empty file."""
    return _labels_and(source, embedding="embedding")


def _labels_and(source: Source, **more: str) -> Table | None:
    with opened(source, "id", "label", "confidence", *more, small=("views",)) as (db, meta):
        if "n_samples" not in meta:
            return None
        chosen = ", ".join(f"{what} AS {column}" for column, what in more.items())
        table = table_of(
            db.sql(f"SELECT id{_mixed(meta)}, label AS cluster, confidence, {chosen} FROM samples")
        )
        return _with_names(db, table, meta)


def _with_names(db: duckdb.DuckDBPyConnection, table: Table, meta: dict[str, Any]) -> Table:
    """Return a table with names of views, and of clusters after their numbers, if any has one."""
    if "hangs_on" in table.column_names:
        views = db.sql("SELECT name FROM views ORDER BY fold").fetchall()
        called = np.array([None, *(name for (name,) in views), None], object)  # −1 is the last
        table = table.with_column("hangs_on", called[np.clip(table["hangs_on"], -1, len(views))])
    names = cluster_names(meta)
    if not names:
        return table
    called = np.array([names.get(c) for c in table["cluster"].tolist()], dtype=object)
    return table.with_column("name", called, after="cluster")


def clustering(source: Source) -> tuple[Table | None, Log, list[str]]:
    """Return id and cluster of every sample, the log, and the names of the views."""
    with opened(source, "id", "label", small=("log", "views")) as (db, meta):
        table = table_of(db.sql(f"SELECT id{_mixed(meta)}, label AS cluster FROM samples"))
        log = events_of(small_table(db, "log ORDER BY entry", SMALL["log"]))
        views = db.sql("SELECT name FROM views ORDER BY fold").fetchall()
    return table if "n_samples" in meta else None, log, [name for (name,) in views]


def status(source: Source) -> dict[str, Any]:
    """Return what a file holds: method, sizes of clusters, and what each view brought.

    Samples that are in a view, and those that are not (`unseen`), are those of now; who moved is
    told of its first fold.
    """
    small, columns = ("views", "steps", "arrays"), ("label", "hangs_on", "views_seen", "history")
    with opened(source, *columns, small=small) as (db, meta):
        params = meta["params"]
        sizes = dict(db.sql("SELECT label, count(*) FROM samples GROUP BY label").fetchall())
        hangs = db.sql("SELECT hangs_on, count(*) FROM samples GROUP BY hangs_on").fetchall()
        rows = db.sql(
            """
            SELECT fold, v.name, count(*) FILTER (views_seen[fold]), n_features, n_new, n_shared,
                   n_empty, n_missing, count(*) FILTER (NOT views_seen[fold]),
                   count(*) FILTER (step > 1 AND history[step - 1] >= 0
                                    AND history[step - 1] <> history[step]),
                   round(agreement, 3)
            FROM views v JOIN steps USING (entry), samples GROUP BY ALL ORDER BY fold
            """
        ).fetchall()
        kept = {name for (name,) in db.sql("SELECT name FROM arrays").fetchall()}
        features = dict(db.sql("SELECT fold, features FROM views").fetchall())
        parts = parts_of(small_table(db, "arrays WHERE name LIKE 'profile/%'", SMALL["arrays"]))
        called = cluster_names(meta)
        k = max([params["n_clusters"], *(label + 1 for label in sizes)]) if sizes else 0
        if k > MOST_CLUSTERS:
            raise UnreadableError(f"it has {k:,} clusters")
    counts = "samples", "features", "new", "shared", "empty", "missing", "unseen", "moved"
    names = "view", *counts, "agreement"
    return {
        "method": meta["method"],
        "clusters": params["n_clusters"],
        "samples": sum(sizes.values()),
        "cluster_sizes": [sizes.get(label, 0) for label in range(k)],
        "cluster_names": called,
        "private": not params["keep_encoders"],
        "hanging": hanging_shares(dict(hangs), [row[1] for row in rows]),
        "views": [
            {
                **dict(zip(names, row[1:], strict=True)),
                "encoder": f"encoder/{row[0]}" in kept,
                **_staleness(parts, row[0], features[row[0]]),
            }
            for row in rows
        ],
    }


def hanging_shares(counts: dict[int, int], views: Sequence[str]) -> dict[str, Any] | None:
    """Return how many labels hang on one view, of those of samples with two or more; by view.

    None if nobody knows. `counts` are by what `viewfold.state.clusters.hangs_on` says.
    """
    known = {which: n for which, n in counts.items() if which >= 0}
    if not (total := sum(known.values())):
        return None
    each = {name: known.get(i, 0) for i, name in enumerate(views, 1)}
    return {
        "samples": total,
        "share": round(1 - known.get(0, 0) / total, 4),
        "views": {name: round(n / total, 4) for name, n in each.items() if n},
    }


def _staleness(parts: dict[str, Any], fold: int, features: Sequence[str] | None) -> dict[str, Any]:
    """Return what came of a view since it was learned, and how far that is from what was."""
    from viewfold.data.expected import drift_of
    from viewfold.state.parts import put_together

    profile = put_together(parts, f"profile/{fold}")
    if profile is None:
        none = dict.fromkeys(("rows_since", "share_since", "deliveries_since", "drift"))
        return {**none, "drifted": {}, "refresh_pays": None}
    far = drift_of(profile)
    learned, since = profile.counts[:2]
    share = since / max(learned + since, 1)
    drifted = far.total > constants.DRIFTED or far.columns.max() > SHIFTED
    worst = np.argsort(-far.columns, kind="stable")[:MOST_DRIFTED]
    return {
        "rows_since": int(since),
        "share_since": round(float(share), 3),
        "deliveries_since": int(profile.counts[2]),
        "drift": round(far.total, 3),
        "drifted": {
            features[j] if features else str(j): round(float(far.columns[j]), 3)
            for j in worst.tolist()
            if far.columns[j] > 0
        },
        "refresh_pays": bool(share >= STALE and drifted),
    }


def log(source: Source) -> Log:
    if isinstance(source, Contents):
        return source.log()
    with store_of(source).reading() as contents:
        return contents.log()


def way(source: Source, sample: str) -> list[dict[str, Any]]:
    """Return the clusters of one sample after every step since it came; none if it is unknown."""
    with opened(source, "id", "added", "views_seen", "history") as (db, meta):
        # A number and a text that look the same are two samples: the text is meant.
        which = "ORDER BY id_is_int LIMIT 1" if _mixed(meta) else ""
        # Numbers have no zeros before them.
        is_number = meta.get("ids") == "int" and sample.removeprefix("-").isdecimal()
        found = db.execute(
            f"""
            SELECT entry, what, view, epoch_us(time), what = 'extend' OR views_seen[fold],
                   history[step]
            FROM ({STEPS}), (FROM samples WHERE id::VARCHAR = ? {which})
            WHERE entry = added OR (entry > added AND entry = written) ORDER BY entry
            """,
            [str(int(sample)) if is_number else sample],
        ).fetchall()
    names = "entry", "what", "view", "time", "in_view", "cluster"
    rows = [dict(zip(names, row, strict=True)) for row in found]
    return [{**row, "time": time_of(row["time"])} for row in rows]


def names(source: Source) -> list[str]:
    with opened(source, small=("views",)) as (db, _):
        return [name for (name,) in db.sql("SELECT name FROM views ORDER BY fold").fetchall()]


def events(source: Source) -> list[ClusterEvent]:
    """Return what happened to clusters from step to step."""
    from viewfold.explain.events import whole_story
    from viewfold.rows import LocalEngine

    with opened(source, "history", small=("log", "steps", "views")) as (db, meta):
        if "n_samples" not in meta:
            return []
        steps = db.sql("SELECT entry, name FROM steps ORDER BY step").fetchall()
        history = table_of(db.sql("SELECT history FROM samples"))["history"]
        log = events_of(small_table(db, "log ORDER BY entry", SMALL["log"]))
    entries, names = map(list, zip(*steps, strict=True))
    return whole_story(LocalEngine(), history, entries, names, log)


def movers(source: Source, view: str) -> Table:
    """Return who changed cluster when a view was folded: id, before, after."""
    with opened(source, "id", "history", small=("views", "steps")) as (db, meta):
        return table_of(
            db.sql(
                f"SELECT id{_mixed(meta)}, history[step - 1] AS before, history[step] AS after "
                "FROM samples, (FROM views v JOIN steps USING (entry) WHERE v.name = $1) "
                "WHERE step > 1 AND history[step - 1] >= 0 AND history[step - 1] <> history[step]",
                params=[view],
            )
        )


def everything(source: Source) -> Table | None:
    """Return all there is of every sample, a column for every number; None of an empty file."""
    all_columns = "id", "label", "confidence", "novelty", "hangs_on", "added", "views_seen"
    with opened(source, *all_columns, "history", "embedding", small=("views", "steps")) as (
        db,
        meta,
    ):
        if "n_samples" not in meta:
            return None
        steps = [name for (name,) in db.sql("SELECT name FROM steps ORDER BY step").fetchall()]
        views = [name for (name,) in db.sql("SELECT name FROM views ORDER BY fold").fetchall()]
        (width,) = db.sql("SELECT len(embedding::DOUBLE[]) FROM samples LIMIT 1").fetchall()[0]
        chosen = {"id": "id"} | ({"id_is_int": "id_is_int"} if _mixed(meta) else {})
        chosen |= {"cluster": "label", "confidence": "confidence"}
        chosen |= {"novelty": NOVELTY, "hangs_on": "hangs_on", "views_seen": N_SEEN}
        chosen |= {f"in_{name}": f"views_seen[{i}]" for i, name in enumerate(views, 1)}
        chosen |= {f"cluster_after_{name}": f"history[{i}]" for i, name in enumerate(steps, 1)}
        chosen |= {f"z{i}": f"embedding[{i + 1}]" for i in range(width)}
        # DuckDB takes names that differ in case only for one: they are put on afterwards.
        columns = ", ".join(f"{what} AS c{i}" for i, what in enumerate(chosen.values()))
        table = table_of(db.sql(f"SELECT {columns} FROM samples"))
        named = Table(dict(zip(chosen, table.columns.values(), strict=True)))
        return _with_names(db, named, meta)
