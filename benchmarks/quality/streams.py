"""Accuracy along streams, each row predicted and then learnt, beside river's models."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np
from river import forest, naive_bayes, tree

from figmn import MixtureClassifier
from quality import sets
from quality.report import table

STREAMS = {"electricity": ("elec", None), "weather": ("weather", None)} | {
    "covertype, first 50,000": ("covtype", 50_000)
}
PEERS = {
    "naive Bayes": lambda: naive_bayes.GaussianNB(),
    "Hoeffding tree": lambda: tree.HoeffdingTreeClassifier(),
    "adaptive random forest": lambda: forest.ARFClassifier(n_models=10, seed=1),
}
HALF_LIFE = 1000.0


def run() -> str:
    """Per cent right, and microseconds a row."""
    header = ["stream", "rows", "same as the row before", "ours", "us a row"]
    header += [part for name in PEERS for part in (f"{name}", "us a row")]
    lines = []
    for name, (file, n_rows) in STREAMS.items():
        frame = sets.stream(file, n_rows)
        rows = np.ascontiguousarray(frame.iloc[:, :-1], dtype=np.float64)
        labels = frame.iloc[:, -1].to_numpy()
        same = 100.0 * np.mean(labels[1:] == labels[:-1])
        results = [_ours(rows, labels)]
        print(name, *results, flush=True)
        pairs = list(zip(frame.iloc[:, :-1].to_dict("records"), labels.tolist(), strict=True))
        for peer in PEERS.values():
            results.append(_river(peer(), pairs))
            print(name, *results[-1], flush=True)
        figures = [part for right, us in results for part in (f"{right:.2f}", f"{us:.0f}")]
        lines.append([name, f"{len(rows):,}", f"{same:.2f}", *figures])
    return table(header, lines)


def _ours(rows: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    model = MixtureClassifier(half_life=HALF_LIFE)
    right = 0
    start = time.process_time()
    for t in range(len(rows)):
        row, label = rows[t : t + 1], labels[t : t + 1]
        if t > 0:
            right += int(model.predict(row)[0] == label[0])
        model.partial_fit(row, label)
    return _figures(right, len(rows), start)


def _river(model: object, pairs: Iterable[tuple[dict[str, float], object]]) -> tuple[float, float]:
    right, count = 0, 0
    start = time.process_time()
    for x, y in pairs:
        right += int(model.predict_one(x) == y)
        model.learn_one(x, y)
        count += 1
    return _figures(right, count, start)


def _figures(right: int, count: int, start: float) -> tuple[float, float]:
    return 100.0 * right / count, 1e6 * (time.process_time() - start) / count
