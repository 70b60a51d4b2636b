"""How many planted events are found in label histories, and how many are told that are none.

    python tests/planted_events.py [--streams 1000] [--seed 0] [--noise 0.05]

A stream is a history of labels: 200 to 5,000 samples in 4 to 15 clusters of unequal size (the
smallest have 15 samples), two to six steps. At each step clusters merge, are split, are born (of
new samples, or of parts of others), vanish among the others, grow or shrink; new samples come; and
up to 5 % of all samples are in a random cluster that is not theirs, others at each step or always
the same. Numbers are given as viewfold gives them, by matching: free ones are used again.

An event is found if its kind and all its clusters are told; any other that is told is false. Of a
cluster that vanishes, no other gets more than 45 % (it would rather have merged). Growth is that of
the labels without noise, beyond that of the median cluster: by 40 % and 30 samples it should be
told, by less than 15 % it should not, and in between it may be (shrinking: 30 % and 12 %).
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from viewfold.explain.events import ClusterEvent, whole_story
from viewfold.method.clusters import match
from viewfold.rows import LocalEngine

SMALLEST = 15
"""Samples of the smallest cluster, and of the smallest part of one."""

TOLD, UNTOLD = (1.4, 0.7), (1.15, 0.88)
"""Beyond which change of size a cluster should be told to have grown or shrunk; within, not."""

Key = tuple[str, frozenset[int], frozenset[int]]


@dataclass
class Stream:
    """A history of labels with the events that were planted in it.

    Attributes
    ----------
    history : ndarray of int, shape (n_samples, n_steps)
        The labels.
    planted, allowed : list of set
        For each step but the first, events that should be told, and those that may be.
    """

    history: np.ndarray
    planted: list[set[Key]]
    allowed: list[set[Key]]


@dataclass
class _World:
    """The true cluster of every sample, and what happened to clusters since the last step.

    Attributes
    ----------
    random : numpy.random.Generator
        All draws.
    true : ndarray of int
        The true cluster of each sample; a number is never used twice.
    wrong : ndarray of float
        A number for each sample; the smallest are in a cluster that is not theirs.
    uniform : bool
        Whether samples that leave a cluster go to all others alike, or by their size.
    used : int
        The last cluster.
    origin : dict
        For each cluster, those before the step that it consists of.
    touched : set of int
        Clusters to which something happened.
    """

    random: np.random.Generator
    true: np.ndarray
    wrong: np.ndarray
    uniform: bool
    used: int
    origin: dict[int, set[int]] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)

    def free(self, least: int = 0) -> list[int]:
        """Return clusters to which nothing happened, of some size, in random order."""
        names, sizes = np.unique(self.true, return_counts=True)
        here = [int(c) for c in names[sizes >= least] if c not in self.touched]
        return [int(c) for c in self.random.permutation(here)]

    def size(self, c: int) -> int:
        return int(np.count_nonzero(self.true == c))

    def fresh(self, origin: set[int]) -> int:
        c = self.used = self.used + 1
        self.origin[c] = origin
        self.touched.add(c)
        return c

    def others(self, n: int, without: set[int]) -> np.ndarray:
        """Draw clusters for n samples: all alike, or by their size."""
        names, sizes = np.unique(self.true, return_counts=True)
        here = ~np.isin(names, list(without))
        share = np.ones(here.sum()) if self.uniform else sizes[here]
        return self.random.choice(names[here], n, p=share / share.sum())

    def some(self, c: int, share: float) -> np.ndarray:
        """Draw a share of the samples of a cluster."""
        own = np.flatnonzero(self.true == c)
        return self.random.permutation(own)[: round(share * own.size)]

    def arrive(self, labels: np.ndarray) -> None:
        self.true = np.concatenate([self.true, labels])
        self.wrong = np.concatenate([self.wrong, self.random.random(labels.size)])

    # -- what can happen

    def merge(self) -> None:
        a, b, *_ = self.free()
        c = self.fresh({a, b})
        self.true[np.isin(self.true, [a, b])] = c
        self.touched |= {a, b}

    def split(self) -> None:
        a = self.free(4 * SMALLEST)[0]
        share = self.random.uniform(max(0.15, SMALLEST / self.size(a)), 0.5)
        part = self.some(a, share)
        b, c = self.fresh({a}), self.fresh({a})
        self.true[self.true == a] = c
        self.true[part] = b
        self.touched.add(a)

    def vanish(self) -> None:
        a = self.free()[0]
        self.touched.add(a)
        own = self.true == a
        goes = self.others(int(own.sum()), self.touched)
        if np.unique(goes, return_counts=True)[1].max() > 0.45 * goes.size:
            raise IndexError  # then it would rather have merged
        self.true[own] = goes

    def birth(self) -> None:
        size = int(self.random.uniform(SMALLEST, max(2 * SMALLEST, 0.15 * self.true.size)))
        if self.random.random() < 0.7:
            self.arrive(np.full(size, self.fresh(set())))
            return
        donors = self.free(4 * SMALLEST)[:5]
        if len(donors) < 3:
            raise IndexError
        taken = np.concatenate([self.some(a, 0.1) for a in donors])
        sizes = Counter(self.true[taken].tolist())
        if len(taken) < SMALLEST or max(sizes.values()) > 0.4 * len(taken):
            raise IndexError
        self.true[taken] = self.fresh(set())

    def grow(self) -> None:
        a = self.free()[0]
        self.touched.add(a)
        more = max(SMALLEST * 2, int(self.size(a) * self.random.uniform(0.5, 2)))
        donors = [c for c in self.free() if 0.35 * self.size(c) > more > 0.25 * self.size(c)]
        if donors and self.random.random() < 0.5:
            own = np.flatnonzero(self.true == donors[0])
            self.true[self.random.permutation(own)[:more]] = a
        else:
            self.arrive(np.full(more, a))

    def shrink(self) -> None:
        a = self.free(6 * SMALLEST)[0]
        self.touched.add(a)
        gone = self.some(a, self.random.uniform(0.32, 0.42))
        self.true[gone] = self.others(gone.size, self.touched)


KINDS = ("merge", "split", "vanish", "birth", "grow", "shrink")
PAIRS = {"merge": ("split", "birth"), "split": ("merge", "vanish"), "vanish": ("birth", "split")}
"""What happens with it where the number of clusters stays."""


def stream(seed: int, noise: float | None = None) -> Stream:
    """Return a history with planted events; noise is 0 to 5 % if not given."""
    random = np.random.default_rng(seed)
    n, k = int(np.exp(random.uniform(np.log(200), np.log(5000)))), int(random.integers(4, 16))
    k = max(4, min(k, n // (2 * SMALLEST)))
    share = random.lognormal(0, random.choice([0.3, 0.8, 1.2]), k)
    sizes = np.maximum(SMALLEST, (n * share / share.sum()).astype(int))
    true, uniform = np.repeat(np.arange(k), sizes), random.random() < 0.5
    world = _World(random, true, random.random(true.size), uniform, k)
    drawn, redrawn = random.choice([0, 0.01, 0.02, 0.05]), random.random() < 0.5
    noise = float(drawn) if noise is None else noise
    constant, coming = random.random() < 0.5, random.choice([0, 0.1, 0.3])
    columns, numbers = [], []
    planted, allowed = [], []
    for step in range(int(random.integers(2, 7))):
        before = world.true.copy()
        world.origin, world.touched = {}, set()
        if step:
            _happen(world, constant)
            world.arrive(world.others(int(coming * world.true.size), set()))
        labels, number = _labelled(world, noise, redrawn, columns[-1] if columns else None)
        columns.append(labels)
        numbers.append(number)
        if step:
            must, may = _truth(world, before, numbers[-2], number)
            planted.append(must)
            allowed.append(must | may)
    history = np.full((world.true.size, len(columns)), -1, np.int32)
    for i, column in enumerate(columns):
        history[: column.size, i] = column
    return Stream(history, planted, allowed)


def _happen(world: _World, constant: bool) -> None:
    """Let something happen to clusters, as far as they are large enough; at times nothing."""
    todo = [str(kind) for kind in world.random.choice(KINDS, world.random.integers(0, 3))]
    for kind in todo:
        with_it = [str(world.random.choice(PAIRS[kind]))] if constant and kind in PAIRS else []
        for one in (kind, *with_it):
            try:
                getattr(world, one)()
            except (IndexError, ValueError):  # no clusters for it
                break


def _labelled(
    world: _World, noise: float, redrawn: bool, last: np.ndarray | None
) -> tuple[np.ndarray, dict[int, int]]:
    """Return labels with noise, numbered like the last ones; the number of each cluster."""
    if redrawn:
        world.wrong = world.random.random(world.true.size)
    names, labels = np.unique(world.true, return_inverse=True)
    off = np.flatnonzero(world.wrong < noise)
    share = np.ones(len(names)) if world.uniform else np.bincount(labels)
    labels[off] = world.random.choice(len(names), off.size, p=share / share.sum())
    number = np.arange(len(names))
    if last is not None:
        previous = np.concatenate([last, np.full(labels.size - last.size, -1)])
        number = match(LocalEngine(), previous, labels, len(names))
    return number[labels], dict(zip(names.tolist(), number.tolist(), strict=True))


def _truth(
    world: _World, before: np.ndarray, old: dict[int, int], new: dict[int, int]
) -> tuple[set[Key], set[Key]]:
    """Return what happened, in the numbers of clusters: what should be told, and what may be."""
    was, now = (
        dict(zip(*np.unique(x, return_counts=True), strict=True)) for x in (before, world.true)
    )
    must: set[Key] = set()
    parts: dict[int, list[int]] = {}
    for c, origin in world.origin.items():
        if len(origin) == 1:
            parts.setdefault(min(origin), []).append(c)
        else:
            key = frozenset(old[a] for a in origin), frozenset([new[c]])
            must.add(("merged" if origin else "born", *key))
    for a, some in parts.items():
        must.add(("split", frozenset([old[a]]), frozenset(new[c] for c in some)))
    used = {a for origin in world.origin.values() for a in origin}
    must |= {
        ("vanished", frozenset([old[a]]), frozenset())
        for a in was
        if a not in now and a not in used
    }
    alone = [c for c in was if c in now]
    usual = max(1.0, float(np.median([now[c] / was[c] for c in alone]))) if alone else 1.0
    may: set[Key] = set()
    for c in alone:
        key = frozenset([old[c]]), frozenset([new[c]])
        if old[c] != new[c]:
            must.add(("renumbered", *key))
        up, down = now[c] / was[c] / usual, now[c] / was[c]
        if up > UNTOLD[0]:
            (must if up >= TOLD[0] and now[c] - was[c] * usual >= 2 * SMALLEST else may).add(
                ("grew", *key)
            )
        if down < UNTOLD[1]:
            (must if down <= TOLD[1] and was[c] - now[c] >= 2 * SMALLEST else may).add(
                ("shrank", *key)
            )
    return must, may


def key_of(event: ClusterEvent) -> Key:
    return event.kind, frozenset(event.before), frozenset(event.after)


def compared(one: Stream) -> Iterator[tuple[str, str]]:
    """Yield "planted", "found", "missed", "told" or "false" with the kind of an event."""
    n_steps = one.history.shape[1]
    entries = range(n_steps)
    found = whole_story(LocalEngine(), one.history, entries, [""] * n_steps, ())
    found = [event for event in found if event.kind != "step"]
    for entry, must, may in zip(entries[1:], one.planted, one.allowed, strict=True):
        told = {key_of(event) for event in found if event.entry == entry}
        for key in must:
            yield "planted", key[0]
            yield ("found" if key in told else "missed"), key[0]
        for key in told:
            yield "told", key[0]
            if key not in may:
                yield "false", key[0]


def measure(streams: int, seed: int, noise: float | None = None) -> Counter[tuple[str, str]]:
    """Return how many events of each kind were planted, found, told, and false."""
    return Counter(
        pair for i in range(streams) for pair in compared(stream(seed * 1_000_003 + i, noise))
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noise", type=float)
    asked = parser.parse_args()
    counts = measure(asked.streams, asked.seed, asked.noise)
    kinds = sorted({kind for _, kind in counts})
    print(f"{'event':<12}{'planted':>9}{'found':>9}{'told':>9}{'false':>9}")
    for kind in (*kinds, "all"):
        n = {
            what: sum(c for (w, k), c in counts.items() if w == what and kind in (k, "all"))
            for what in ("planted", "found", "told", "false")
        }
        found, false = n["found"] / max(n["planted"], 1), n["false"] / max(n["told"], 1)
        print(f"{kind:<12}{n['planted']:>9}{found:>9.2%}{n['told']:>9}{false:>9.2%}")


if __name__ == "__main__":
    main()
