"""Components and time as a stationary stream grows tenfold."""

from __future__ import annotations

import time

import numpy as np

from figmn import Mixture
from quality.report import table

N_CLUSTERS = 12
SIZES = (20_000, 200_000)
WARMUP = 2048


def run() -> str:
    """Left to itself, beside the plain loop from the same components."""
    header = [
        "D", "K, 20,000 rows", "K, 200,000 rows", "start, s",
        "us a row after it", "us a row, plain loop of as many components", "times",
    ]  # fmt: skip
    Mixture(2).learn(clusters(2 * WARMUP, 2))  # compiled
    lines = []
    for n_features in (2, 5, 10, 20, 50):
        rows = clusters(SIZES[-1], n_features)
        first, rest = rows[:WARMUP], rows[WARMUP:]
        counts = [Mixture(n_features).learn(rows[:size]).n_components for size in SIZES]
        begin = min(_seconds(Mixture(n_features), first) for _ in range(3))
        begun = Mixture(n_features).learn(first)
        ours = min(_seconds(begun.copy(), rest) for _ in range(3))
        plain = min(_seconds(_alike(begun), rest) for _ in range(3))
        line = [
            str(n_features), *map(str, counts), f"{begin:.2f}",
            f"{1e6 * ours / len(rest):.2f}", f"{1e6 * plain / len(rest):.2f}",
            f"{ours / plain:.2f}",
        ]  # fmt: skip
        lines.append(line)
        print(*line, flush=True)
    return table(header, lines)


def clusters(n_rows: int, n_features: int) -> np.ndarray:
    """Rows of overlapping clusters of different shapes, in random order."""
    rng = np.random.default_rng(n_features)
    centers = 2.0 * rng.normal(size=(N_CLUSTERS, n_features))
    shapes = rng.normal(size=(N_CLUSTERS, n_features, n_features)) / np.sqrt(n_features)
    which = rng.integers(N_CLUSTERS, size=n_rows)
    noise = rng.normal(size=(n_rows, n_features))
    return centers[which] + np.einsum("nij,nj->ni", shapes[which], noise) + 0.3 * noise


def _alike(begun: Mixture) -> Mixture:
    """As many components to start with, and none to come."""
    return Mixture.from_parameters(
        begun.means, begun.covariances, begun.weights, mass=float(WARMUP), delta=1.0, beta=0.0
    )


def _seconds(mixture: Mixture, rows: np.ndarray) -> float:
    start = time.perf_counter()
    mixture.learn(rows)
    return time.perf_counter() - start
