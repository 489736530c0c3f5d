"""The classifier along streams, each row predicted and then learnt, beside river's forest."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final

import numpy as np
from river import datasets, forest
from river.datasets import synth

from figmn import MixtureClassifier
from live.data import make_rows
from live.entrants import as_dictionaries
from quality import sets

_MOST_ROWS: Final = 3000
_SETTINGS: Final[dict[str, dict[str, Any]]] = {"ours": {}, "half_life": {"half_life": 1000.0}}

Labelled = tuple[np.ndarray, np.ndarray]

HEADER: Final = [
    "stream", "rows", "D", "classes",
    "MixtureClassifier, s", "% right", "the same, half_life=1000, s", "% right",
    "river ARF, s", "% right", "ARF's time over ours", "over ours with half_life",
]  # fmt: skip


def _of_file(name: str) -> Callable[[int], Labelled]:
    def load(n_rows: int) -> Labelled:
        frame = sets.stream(name, n_rows)
        return frame.iloc[:, :-1].to_numpy(dtype=np.float64), frame.iloc[:, -1].to_numpy()

    return load


def _of_river(stream: Iterable[tuple[dict[Any, float], Any]]) -> Callable[[int], Labelled]:
    def load(n_rows: int) -> Labelled:
        rows, labels = zip(*islice(stream, n_rows), strict=True)
        return np.array([list(map(float, row.values())) for row in rows]), np.array(labels)

    return load


STREAMS: Final[dict[str, Callable[[int], Labelled]]] = {
    "electricity": _of_file("elec"),
    "covertype": _of_file("covtype"),
    "image segments": _of_river(datasets.ImageSegments()),
    "waveforms": _of_river(synth.Waveform(seed=1, has_noise=True)),
    "moving clusters": _of_river(
        synth.RandomRBFDrift(1, 1, n_classes=10, n_features=20, change_speed=0.001)
    ),
}


def run(options: argparse.Namespace) -> None:
    """Print seconds, and per cent right."""
    n_rows = min(options.rows, _MOST_ROWS)
    other = make_rows(n_rows, 4, seed=1)
    for settings in _SETTINGS.values():  # compiled
        _ours(MixtureClassifier(**settings), other.complete, other.labels)
    print("| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER), flush=True)
    for name, load in STREAMS.items():
        rows, labels = load(n_rows)
        figures = [
            _ours(MixtureClassifier(**settings), rows, labels) for settings in _SETTINGS.values()
        ]
        figures.append(_river(forest.ARFClassifier(seed=1), rows, labels))
        seconds = [each[0] for each in figures]
        line = [name, f"{len(rows):,}", str(rows.shape[1]), str(len(np.unique(labels)))]
        line += [part for each in figures for part in (f"{each[0]:.2f}", f"{each[1]:.1f}")]
        line += [f"{seconds[-1] / each:.1f}" for each in seconds[:-1]]
        print("| " + " | ".join(line) + " |", flush=True)


def _ours(model: MixtureClassifier, rows: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    pairs = [(rows[t : t + 1], labels[t : t + 1]) for t in range(len(rows))]
    right = 0
    start = time.perf_counter()
    for t, (row, label) in enumerate(pairs):
        if t > 0:
            right += int(model.predict(row)[0] == label[0])
        model.partial_fit(row, label)
    return time.perf_counter() - start, 100.0 * right / len(rows)


def _river(model: Any, rows: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    pairs = list(zip(as_dictionaries(rows), labels.tolist(), strict=True))
    right = 0
    start = time.perf_counter()
    for x, y in pairs:
        right += int(model.predict_one(x) == y)
        model.learn_one(x, y)
    return time.perf_counter() - start, 100.0 * right / len(rows)
