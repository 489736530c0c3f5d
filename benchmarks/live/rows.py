"""The time of each row that is asked about and then learnt."""

from __future__ import annotations

import argparse
import gc
import time
import warnings
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from live import entrants
from live.data import Rows, make_rows
from live.entrants import Entrant, Item
from timing import best_seconds

CLASSES: Final = {2: (2, 10), 8: (2, 10, 26), 16: (2, 10, 26), 36: (2, 10, 26), 100: (2, 10)}
"""Dimensions, and how many classes there are in each."""

FIRST: Final = 5000
"""Rows of the first part."""

_WARM_UP: Final = 2500
_OTHER_SEED: Final = 1

HEADER: Final = [
    "model", "D", "classes", "rows",
    "first 5000: median", "99.9 %", "longest", "at row",
    "from then on: median", "99.9 %", "longest", "at row",
    "first 5000 in all, s", "times learning alone, row by row", "times learning in one chunk",
]  # fmt: skip


def time_rows(
    model: Any, entrant: Entrant, items: list[Item], most_seconds: float = np.inf
) -> np.ndarray:
    """Seconds that each row takes, of shape (N,): to be asked about, then learnt.

    Garbage is collected as usual, but not searched for among the rows that lie ready here.
    After the first part, it stops when that many seconds more have passed.
    """
    gc.collect()
    gc.freeze()
    ask, learn, clock = entrant.ask, entrant.learn, time.perf_counter_ns
    times = np.empty(len(items))
    last, count = np.inf, len(items)
    for t, item in enumerate(items):
        start = clock()
        if t > 0 or entrant.at_once:
            ask(model, item[0])
        learn(model, *item)
        times[t] = clock() - start
        if t == FIRST:
            last = start + 1e9 * most_seconds
        if start > last:
            count = t + 1
            break
    gc.unfreeze()
    return times[:count] * 1e-9


def compile_kernels(entrant: Entrant, n_rows: int, n_features: int) -> None:
    """Run on other rows, and on some that have moved, for all that it needs to be compiled."""
    if entrant.chunk is None:
        return
    rows = make_rows(min(n_rows, _WARM_UP), n_features, seed=_OTHER_SEED)
    model = entrant.make()
    time_rows(model, entrant, entrant.items(rows))
    moved = rows._replace(complete=rows.complete + 5.0, gappy=rows.gappy + 5.0)
    entrant.learn(model, *entrant.chunk(moved))
    entrant.ask(model, entrant.items(moved)[0][0])


def measure(
    entrant: Entrant, rows: Rows, n_classes: int | None, repeats: int, most_seconds: float
) -> list[str]:
    """A line of the table; the time of a row is the least of several runs."""
    items = entrant.items(rows)[: entrant.most_rows]
    runs = [time_rows(entrant.make(), entrant, items, most_seconds) for _ in range(repeats)]
    times = np.min([each[: min(map(len, runs))] for each in runs], axis=0)
    total = times[:FIRST].sum()
    alone = best_seconds(lambda: _learn_alone(entrant, items[:FIRST]), repeats)
    in_chunk = "-"
    if entrant.chunk is not None:
        chunk = tuple(each[:FIRST] for each in entrant.chunk(rows))
        seconds = best_seconds(lambda: entrant.learn(entrant.make(), *chunk), repeats + 1)
        in_chunk = f"{total / seconds:.2f}"
    n_features = rows.complete.shape[1]
    return [
        *(entrant.name, str(n_features), str(n_classes or "-"), f"{len(times):,}"),
        *(*_figures(times[:FIRST], 0), *_figures(times[FIRST:], FIRST)),
        *(f"{total:.2f}", f"{total / alone:.2f}", in_chunk),
    ]


def _learn_alone(entrant: Entrant, items: list[Item]) -> None:
    model, learn = entrant.make(), entrant.learn
    for item in items:
        learn(model, *item)


def _figures(times: np.ndarray, before: int) -> list[str]:
    """Median, 99.9th percentile, longest, and which row that is, counted from one."""
    if len(times) == 0:
        return ["-"] * 4
    figures = np.median(times), np.quantile(times, 0.999), times.max()
    return [*map(duration, figures), f"{before + int(times.argmax()) + 1:,}"]


def duration(seconds: float) -> str:
    """Seconds with three digits, in a unit that suits them."""
    for unit, size in (("us", 1e-6), ("ms", 1e-3)):
        if seconds < 999.5 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def lines(options: argparse.Namespace) -> Iterator[list[str]]:
    """The table, a line after the other."""
    for kind in options.kinds:
        for n_features in options.dimensions:
            ours = entrants.KINDS[kind]
            compile_kernels(ours, options.rows, n_features)
            peers = entrants.peers(kind, options.peer_rows) if options.peer_rows else []
            for n_classes in CLASSES[n_features] if kind == "classifier" else (None,):
                rows = make_rows(options.rows, n_features, n_classes or 2)
                for entrant in (ours, *peers):
                    yield measure(entrant, rows, n_classes, options.repeats, options.seconds)


def run(options: argparse.Namespace) -> None:
    """Print each line of the table as soon as it is measured."""
    warnings.filterwarnings("ignore", "Columns .* have had no known value")  # in first rows
    print("| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER), flush=True)
    for line in lines(options):
        print("| " + " | ".join(line) + " |", flush=True)
