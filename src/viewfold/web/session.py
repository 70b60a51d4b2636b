"""One state, and all that a page may ask of it or do to it.

The functions are those of the command line; whatever they refuse leaves the state as it was. What
the page shows is read again when the state on disk is another, whoever changed it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewfold._util.version import __version__
from viewfold.app import output, summaries
from viewfold.app.folding import add, fold_line
from viewfold.app.states import check_folded, check_table, describe_model, last_entry
from viewfold.app.summaries import (
    compose_command,
    describe_clusters,
    explain_sample,
    summarize_inspection,
)
from viewfold.app.words import for_cli
from viewfold.errors import InputError
from viewfold.web import inputs
from viewfold.web.data import changes_since, with_new_names
from viewfold.web.inputs import Uploads
from viewfold.web.jobs import ChangedError, Job, Worker

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator
    from viewfold.state.log import Event, Log
    from viewfold.web import PageData

SOON = 5.0  # seconds that a change which is soon done waits for another writer


# What can be done to a state, and what the page says meanwhile.
DOING = {
    "inspect": "reading the file",
    "fold": "reading the file",
    "recluster": "finding clusters",
    "suggest": "looking at numbers of clusters",
    "rename": "naming a cluster",
    "undo": "taking back",
    "forget": "forgetting samples",
}
QUICK = ("rename", "undo", "forget")


@dataclass(frozen=True)
class Settings:
    """What the command line says about a page."""

    # How many states to return to the file keeps from now on; as many as before if None.
    keep: int | None = None
    wait: float = 60  # seconds to wait for another writer before a fold
    limit: int = 2 * 2**30  # the most bytes of a file that is dropped


class Session:
    """A state that is looked at and worked on."""

    def __init__(self, state: Path, folder: Path, settings: Settings) -> None:
        from viewfold.store import store_of

        self.state, self.settings, self.store = state, settings, store_of(state)
        self.uploads, self.worker = Uploads(folder, settings.limit), Worker()
        self.folder = folder
        self._facts: tuple[Hashable, dict[str, Any], Log] | None = None
        self._shown: tuple[Hashable, PageData] | None = None
        self._reading = threading.Lock()
        self._mine: set[int] = set()

    # -- what there is

    def status(self, said: dict[str, Any]) -> dict[str, Any]:
        """Return what the state holds, who works on it, and what was done since an entry."""
        facts, log = self._read()
        job, since = self.worker.latest, said.get("entry")
        later = [] if since is None else [self._event(e) for e in log if e.entry > since]
        return {
            "file": Path(self.state).name,
            "version": __version__,
            **facts,
            "entry": log[-1].entry if log else 0,
            "last": self._event(log[-1]) if log else None,
            "since": later,
            "written_elsewhere": self.store.is_written(),
            "job": None if job is None or job.state != "running" else job.facts(),
            "limit": self.settings.limit,
        }

    def _read(self) -> tuple[dict[str, Any], Log]:
        """Return facts and log of the state of now, read once for each."""
        from viewfold.store import queries

        mark = self.store.mark()
        if self._facts is None or self._facts[0] != mark:
            if not self.store.exists():
                return {"exists": False, "samples": 0, "clusters": None, "views": []}, ()
            with self.store.reading() as contents:
                found, log = queries.status(contents), queries.log(contents)
            facts = {name: found[name] for name in ("samples", "clusters", "method", "private")}
            facts["views"] = [view["view"] for view in found["views"]]
            self._facts = mark, {"exists": True, **facts}, log
        return self._facts[1:]

    def _event(self, event: Event) -> dict[str, Any]:
        return {
            "entry": event.entry,
            "what": event.what,
            "view": event.view,
            "said": event.said,
            "time": event.time.isoformat(timespec="seconds"),
            "version": event.version,
            "here": event.entry in self._mine,
        }

    def page(self) -> PageData:
        """Return what a page shows of the state of now, made once for each."""
        from viewfold.web import page_data

        with self._reading:
            mark = self.store.mark()
            if self._shown is None or self._shown[0] != mark:
                model = self._folded()
                data = None if self._shown is None else with_new_names(self._shown[1], model)
                data = data or page_data(model, title=Path(self.state).stem, ids=True)
                self._shown = mark, data
            return self._shown[1]

    def column(self, name: str, entry: int | None) -> tuple[bytes, str]:
        """Return a column of what is shown, and its kind; of the state after an entry, if named."""
        data = self._shown[1] if self._shown is not None else self.page()
        if entry is not None and data.summary["entry"] != entry:
            data = self.page()
        if entry is not None and data.summary["entry"] != entry:
            raise self._changed()
        kinds = data.summary["columns"]
        if name not in kinds:
            raise FileNotFoundError(f"There is no column {name!r}. There are: {', '.join(kinds)}.")
        return data.packed(name), kinds[name]

    def explain(self, said: dict[str, Any]) -> dict[str, Any]:
        """Return why a sample is in its cluster, or what makes clusters."""
        sample, view, top = said.get("id"), said.get("view"), said.get("top", 10)
        if sample is not None and "cluster" in said:
            raise InputError("'cluster' asks about a cluster, 'id' about a sample. Choose one.")
        model = self._folded()
        if sample is not None:
            facts, lists, text = explain_sample(model, sample, view, top)
            return {**facts, "text": text, **lists}
        facts, lists = describe_clusters(model, said.get("cluster"), view, top)
        return {**facts, **lists}

    def changes_since(self, said: dict[str, Any]) -> dict[str, Any] | None:
        return changes_since(self._folded(), said["entry"])

    def export(self, ending: str) -> Path:
        """Write the cluster of every sample to a file, which is the caller's to remove."""
        import secrets

        from viewfold.store import queries

        path = self.folder / f"{secrets.token_hex(16)}{ending}"
        output.check(path, output.TABLES)
        try:
            output.write_table(check_table(self.state, queries.labels(self.state)), path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return path

    # -- what takes a while: each gets what was said, and the job to which it reports

    def inspect(self, said: dict[str, Any], job: Job) -> dict[str, Any]:
        """Look at a file that was dropped."""
        from viewfold.app.inspection import inspect_views
        from viewfold.store import load

        with self.uploads.using(said["upload"]) as upload:
            job.words = lambda text: self.named(upload.rename_file(text))
            model = load(self.state) if self.store.exists() else None
            found = inspect_views(
                upload.file(**inputs.pick(said, inputs.FILE)),
                ids=inputs.ids_option(said),
                view=said.get("view"),
                model=model,
                similar_ids=said.get("similar_ids", "refuse"),
                **inputs.pick(said, inputs.READING),
            )
            views = []
            for one in found:
                line = compose_command(one, upload.file(), self.state, new=model is None)
                options = inputs.pick(one.said(), inputs.VIEW)
                options.pop("view", None)
                facts = {**summarize_inspection(one, line), "options": options}
                views.append(_replace_texts(facts, upload.rename_file))
            return {"file": upload.name, "upload": upload.key, "views": views}

    def fold(self, said: dict[str, Any], job: Job) -> dict[str, Any]:
        """Fold a file that was dropped; it goes when that is done."""
        with self.uploads.using(said["upload"]) as upload:
            job.words = lambda text: self.named(upload.rename_file(text))
            file = upload.file(**inputs.pick(said, inputs.FILE))
            how = inputs.fold_options({"keep": self.settings.keep, **said}, self.settings.wait)
            added = add(self.state, file, how, job.step)
            job.written = not how.dry_run
            job.notes += map(for_cli, added.notes(self.state))
        if not how.dry_run:
            self._note_mine(added.model, added.before)
            self.uploads.drop(said["upload"])
        why, now = added.chosen, added.model.n_clusters_
        return {
            **added.facts(),
            "samples": added.model.n_samples_,
            "lines": [fold_line(one) for one in added.folds],
            "evidence": None if why is None else summaries.explain_number(why, now),
            "changes": changes_since(added.model, added.before),
        }

    def recluster(self, said: dict[str, Any], job: Job) -> dict[str, Any]:
        """Find another number of clusters."""
        with self._edit(said.get("entry"), self.settings.wait) as model:
            before = last_entry(model)
            facts, chosen = summaries.recluster(model, said["clusters"])
        job.written = True
        evidence = None if chosen is None else summaries.explain_number(chosen)
        return {**facts, "evidence": evidence, "changes": changes_since(model, before)}

    def suggest(self, said: dict[str, Any], job: Job) -> dict[str, Any]:
        """Find out how much each number of clusters stands out."""
        from viewfold.estimators.selection import suggest_number

        model = self._folded()
        between = range(said["from"], said["to"] + 1) if "from" in said else None
        found = suggest_number(model, between)
        return {
            **summaries.summarize_suggestion(model, found),
            "evidence": summaries.explain_number(found),
        }

    def rename(self, said: dict[str, Any], job: Job) -> dict[str, Any]:
        with self._edit(said.get("entry"), SOON) as model:
            model.rename(said["cluster"], said["name"])
        return {"cluster": said["cluster"], "cluster_names": model.cluster_names_}

    def undo(self, said: dict[str, Any], job: Job) -> dict[str, Any]:
        """Take back the change that was named, whatever another writer did in the meantime."""
        from viewfold.store import undo

        model = undo(self.state, entry=said.get("entry"), wait=SOON)
        self._note_mine(model, last_entry(model) - 1)
        return {"undone": said.get("entry"), **describe_model(model)}

    def forget(self, said: dict[str, Any], job: Job) -> dict[str, Any]:
        from viewfold.store import forget

        model = forget(self.state, said["ids"], wait=SOON)
        self._note_mine(model, last_entry(model) - 1)
        return {"forgotten": len(set(said["ids"])), **describe_model(model)}

    def do(self, what: str, said: dict[str, Any]) -> Job | dict[str, Any]:
        """Begin one of these, or do it if that does not take long."""
        if what == "suggest" and (
            ("from" in said) != ("to" in said) or said.get("from", 0) > said.get("to", 0)
        ):
            raise InputError("'from' and 'to' go together, and 'to' is the larger one.")
        job, method = Job(what, DOING[what], self.named), getattr(self, what)
        done = self.worker.start(job, lambda job: method(said, job))
        if what not in QUICK:
            return job
        done.join()
        if job.raised is not None:
            raise job.raised
        return {**(job.answer or {}), "notes": job.notes}

    def undoable(self) -> dict[str, Any]:
        from viewfold.store.models import plan_undo

        with self.store.reading() as contents:
            _, taken = plan_undo(contents)
        return {
            "entry": taken[0].entry if taken else None,
            "events": [self._event(event) for event in taken],
            "said": " and ".join(map(str, taken)) or "the last change",
        }

    @contextmanager
    def _edit(self, entry: int | None, wait: float) -> Iterator[FoldingEstimator]:
        """Change the state, if it is still the one that was looked at."""
        from viewfold.store import edit

        with edit(self.state, keep=self.settings.keep, wait=wait) as model:
            before = last_entry(check_folded(self.state, model))
            if entry is not None and entry != before:
                raise self._changed()
            yield model
        self._note_mine(model, before)

    def _folded(self) -> FoldingEstimator:
        from viewfold.store import load

        name = Path(self.state).name
        if not self.store.exists():
            raise FileNotFoundError(f"There is no {name} yet. Fold a file first.")
        model = load(self.state)
        if not hasattr(model, "views_"):
            raise FileNotFoundError(f"{name} is empty. Fold a file first.")
        return model

    def named(self, text: str) -> str:
        """Return a text that names the state without the folder that it is in."""
        return text.replace(str(self.state), Path(self.state).name)

    def _changed(self) -> ChangedError:
        return ChangedError(
            f"{Path(self.state).name} was changed by another program since it was shown here. "
            "Nothing was done: look at it again first."
        )

    def _note_mine(self, model: FoldingEstimator, before: int) -> None:
        self._mine |= set(range(before + 1, last_entry(model) + 1))


def _replace_texts(facts: Any, words: Callable[[str], str]) -> Any:
    if isinstance(facts, str):
        return words(facts)
    if isinstance(facts, dict):
        return {words(name): _replace_texts(value, words) for name, value in facts.items()}
    return [_replace_texts(one, words) for one in facts] if isinstance(facts, list) else facts
