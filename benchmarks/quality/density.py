"""Held-out log-likelihood against the best of batch EM."""

from __future__ import annotations

import time
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from figmn import IncrementalGaussianMixture, Mixture
from quality import sets
from quality.report import table

HEADER = [
    "data set", "N", "D", "EM: K", "nats a column", "s",
    "ours: K", "against EM", "s",
    "5 orders: mean", "spread", "by class",
    "EM start off", "paper's rule: K", "against EM", "Bayesian: K", "against EM", "s",
]  # fmt: skip


class Problem(NamedTuple):
    """Rows in standard units."""

    known: np.ndarray
    labels: np.ndarray
    others: np.ndarray

    def score(self, model: object) -> float:
        """Nats a column on rows left out."""
        return float(np.mean(model.score_samples(self.others))) / self.known.shape[1]


def problem(name: str) -> Problem:
    """Four fifths to learn and one to judge by."""
    rows, labels = sets.load(name)
    order = np.random.default_rng(0).permutation(len(rows))[: sets.MOST_ROWS]
    rows, labels = rows[order], labels[order]
    count = int(0.8 * len(rows))
    center, scale = rows[:count].mean(axis=0), rows[:count].std(axis=0)
    rows = (rows - center) / np.where(scale > 0.0, scale, 1.0)
    return Problem(rows[:count], labels[:count], rows[count:])


def compared(name: str) -> tuple[list[str], dict[str, float]]:
    """One line of the table, and its figures."""
    data = problem(name)
    n_rows, n_features = data.known.shape
    best, best_k, em_time = _best_em(data)
    start = time.perf_counter()
    ours = IncrementalGaussianMixture().fit(data.known)
    our_time = time.perf_counter() - start
    orders = [np.random.default_rng(seed).permutation(n_rows) for seed in range(1, 6)]
    shuffled = [data.score(IncrementalGaussianMixture().fit(data.known[o])) for o in orders]
    by_class = np.argsort(data.labels, kind="stable")
    sorted_score = data.score(IncrementalGaussianMixture().fit(data.known[by_class]))
    sequential = IncrementalGaussianMixture(delta=1.0, beta=0.1).fit(data.known)
    printed = Mixture(n_features, scale=1.0, delta=1.0, beta=0.1, update="paper")
    printed.learn(data.known)
    start = time.perf_counter()
    bayes = BayesianGaussianMixture(
        n_components=min(32, n_rows // 2), random_state=0, max_iter=200
    )
    bayes.fit(data.known)
    bayes_time = time.perf_counter() - start
    figures = {
        "gain": data.score(ours) - best,
        "mean": float(np.mean(shuffled)) - best,
        "spread": float(np.std(shuffled)),
        "by class": sorted_score - float(np.mean(shuffled)),
        "ratio": ours.n_components_ / best_k,
    }
    line = [
        name, f"{n_rows:,}", str(n_features),
        str(best_k), f"{best:.3f}", f"{em_time:.1f}",
        str(ours.n_components_), f"{figures['gain']:+.3f}", f"{our_time:.1f}",
        f"{figures['mean']:+.3f}", f"{figures['spread']:.3f}", f"{figures['by class']:+.3f}",
        f"{data.score(sequential) - best:+.2f}",
        str(printed.n_components),
        f"{np.mean(printed.log_density(data.others)) / n_features - best:+.2f}",
        str(int(np.sum(bayes.weights_ > 0.01))),
        f"{data.score(bayes) - best:+.3f}", f"{bayes_time:.1f}",
    ]  # fmt: skip
    return line, figures


def _best_em(data: Problem) -> tuple[float, int, float]:
    """Score and number of components of the best EM fit, and how long that one took."""
    best = (-np.inf, 0, 0.0)
    for k in (1, 2, 4, 8, 16, 32):
        if 2 * k > len(data.known):
            break
        start = time.perf_counter()
        model = GaussianMixture(k, random_state=0, max_iter=200).fit(data.known)
        best = max(best, (data.score(model), k, time.perf_counter() - start))
    return best


def run() -> str:
    """Both halves of the sets, apart."""
    parts = []
    IncrementalGaussianMixture().fit(np.random.default_rng(0).normal(size=(50, 2)))  # compile
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for title, names in (
            ("Sets that nothing was chosen on", sets.REPORTED_ON),
            ("Sets that the defaults were developed on", sets.DEVELOPED_ON),
        ):
            lines, figures = [], []
            for name in names:
                line, found = compared(name)
                print(" ".join(line), flush=True)
                lines.append(line)
                figures.append(found)
            parts.append(f"**{title}.**\n\n{table(HEADER, lines)}\n\n{_summary(figures)}")
    return "\n\n".join(parts)


def _summary(figures: list[dict[str, float]]) -> str:
    gains, means = ([f[key] for f in figures] for key in ("gain", "mean"))
    return (
        f"Against the best EM, nats a column: {np.mean(gains):+.3f} on average and "
        f"{min(gains):+.3f} at worst; over five orders {np.mean(means):+.3f} and "
        f"{min(means):+.3f}. Spread over the orders at most "
        f"{max(f['spread'] for f in figures):.3f}; sorted by class at worst "
        f"{min(f['by class'] for f in figures):+.3f} against shuffled. At most "
        f"{max(f['ratio'] for f in figures):.1f} times as many components as EM's best."
    )
