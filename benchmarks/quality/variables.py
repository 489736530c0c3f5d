"""Held-out log-likelihood in many variables, with few rows and with more."""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.mixture import GaussianMixture

from figmn import IncrementalGaussianMixture
from paper.datasets import load_images
from quality.report import table

N_ROWS = (200, 1000, 2000, 5000)
N_OTHERS = 2000
N_COMPONENTS = (1, 2, 4)


def run() -> str:
    """Ours beside EM, whose best K is chosen on the very rows that judge."""
    header = ["rows are", "D", "N", "EM: K", "nats a column", "ours: K", "nats a column", "s"]
    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, rows in _problems().items():
            for n_rows in N_ROWS:
                line = [name, str(rows.shape[1]), f"{n_rows:,}", *_compared(rows, n_rows)]
                print(*line, flush=True)
                lines.append(line)
    return table(header, lines)


def _compared(rows: np.ndarray, n_rows: int) -> list[str]:
    known, others = rows[:n_rows], rows[-N_OTHERS:]
    center, scale = known.mean(axis=0), known.std(axis=0)
    known, others = (known - center) / scale, (others - center) / scale
    n_features = rows.shape[1]
    scores = {
        k: GaussianMixture(k, random_state=0).fit(known).score(others) / n_features
        for k in N_COMPONENTS
    }
    best = max(scores, key=scores.__getitem__)
    start = time.perf_counter()
    ours = IncrementalGaussianMixture().fit(known)
    seconds = time.perf_counter() - start
    score = ours.score(others) / n_features
    return [
        str(best), f"{scores[best]:,.3f}",
        str(ours.n_components_), f"{score:.3f}", f"{seconds:.1f}",
    ]  # fmt: skip


def _problems() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    n_rows, n_features = max(N_ROWS) + N_OTHERS, 300
    mixing = rng.normal(size=(n_features, n_features)) / np.sqrt(n_features)
    centers = 0.7 * rng.normal(size=(5, n_features))
    noise = rng.normal(size=(n_rows, n_features))
    digits = load_images("mnist").train[:n_rows] / 255.0
    return {
        "of one Gaussian": rng.normal(size=(n_rows, n_features)) @ mixing,
        "of five round clusters": centers[rng.integers(0, 5, n_rows)] + noise,
        "MNIST digits, noise added": digits + 0.1 * rng.normal(size=digits.shape),
    }
