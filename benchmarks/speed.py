"""Learning speed beside river and batch EM, side by side in one run, one thread each.

Run it with ``make bench``. Every figure is the best of several repetitions, since
other work on the machine only ever adds time.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable

import numpy as np
from river import cluster, covariance, proba
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from figmn import IncrementalGaussianMixture, Mixture
from timing import best_seconds

N_CLUSTERS = 10
# A new component's width, and a threshold under which clusters stay whole: what
# one knows of well-separated clusters. They grow with the dimension, since a
# young component has seen too few rows to know its shape.
SETTINGS = {
    2: {"scale": 2.0, "beta": 1e-8},
    5: {"scale": 2.0, "beta": 1e-9},
    10: {"scale": 3.0, "beta": 1e-12},
    20: {"scale": 3.0, "beta": 1e-12},
    50: {"scale": 4.0, "beta": 1e-20},
}


def clusters(
    n_rows: int, n_features: int, seed: int, ratio: float, layout: int = 99
) -> np.ndarray:
    """Rows of ten elongated clusters in random places and directions, by ``layout``.

    Each is ``ratio`` times as frequent as the one before.
    """
    shape = np.random.default_rng(layout)
    turns = np.linalg.qr(shape.normal(size=(N_CLUSTERS, n_features, n_features)))[0]
    widths = np.exp(shape.uniform(np.log(0.3), np.log(3.0), (N_CLUSTERS, 1, n_features)))
    side = 12.0 * N_CLUSTERS ** (1.0 / n_features)
    centers: list[np.ndarray] = []
    while len(centers) < N_CLUSTERS:
        center = shape.uniform(-side, side, n_features)
        if all(np.linalg.norm(center - other) > 14.0 for other in centers):
            centers.append(center)
        side *= 1.005
    rng = np.random.default_rng(seed)
    frequencies = ratio ** np.arange(N_CLUSTERS)
    which = rng.choice(N_CLUSTERS, size=n_rows, p=frequencies / frequencies.sum())
    noise = rng.normal(size=(n_rows, n_features))
    return np.array(centers)[which] + np.einsum("nij,nj->ni", (turns * widths)[which], noise)


def per_row(action: Callable[[object], object], rows: Iterable[object], repeats: int = 5) -> float:
    """Least time for each row of a loop over rows, in microseconds."""
    rows = list(rows)

    def loop() -> None:
        for row in rows:
            action(row)

    return best_seconds(loop, repeats) / len(rows) * 1e6


def as_dictionaries(rows: np.ndarray) -> list[dict[int, float]]:
    """Rows as river takes them."""
    return [dict(enumerate(row.tolist())) for row in rows]


def measure(n_features: int, n_rows: int, ratio: float) -> dict[str, float]:
    """All figures for one dimension and one kind of data."""
    train, test = (
        clusters(count, n_features, seed, ratio) for seed, count in enumerate((n_rows, 5000))
    )
    settings = SETTINGS[n_features]
    ours = IncrementalGaussianMixture(**settings).partial_fit(train)
    ours_seconds = best_seconds(
        lambda: IncrementalGaussianMixture(**settings).partial_fit(train), 5
    )
    batch = GaussianMixture(ours.n_components_, random_state=0)
    batch_seconds = best_seconds(lambda: batch.fit(train), 3)
    # Rows one by one, into models that have already learnt: the steady state.
    mixture = Mixture(n_features, **settings).learn(train)
    dictionaries = as_dictionaries(train[:1000])
    gaussian, precision = proba.MultivariateGaussian(), covariance.EmpiricalPrecision()
    clusterer = cluster.KMeans(n_clusters=N_CLUSTERS, seed=0)
    return {
        "D": n_features,
        "ratio": ratio,
        "K": ours.n_components_,
        "chunk": n_rows / ours_seconds,
        "learn_one": per_row(mixture.learn_one, train[:2000]),
        "partial_fit": per_row(ours.partial_fit, [row[np.newaxis] for row in train[:2000]]),
        "gaussian": per_row(gaussian.update, dictionaries, 1),
        "precision": per_row(precision.update, dictionaries, 1),
        "kmeans": per_row(clusterer.learn_one, dictionaries, 1),
        "batch": batch_seconds,
        "iterations": batch.n_iter_,
        "faster": batch_seconds / ours_seconds,
        "likelihood": ours.score(test) - batch.score(test),
    }


def compare_layouts(n_features: int, n_rows: int, layouts: Iterable[int]) -> list[str]:
    """How many times faster than EM for even clusters in other places, and held-out nats."""
    settings, cells = SETTINGS[n_features], []
    for layout in layouts:
        train, test = (
            clusters(count, n_features, seed, 1.0, layout)
            for seed, count in enumerate((n_rows, 5000))
        )
        ours = IncrementalGaussianMixture(**settings).partial_fit(train)
        seconds = best_seconds(
            lambda rows=train: IncrementalGaussianMixture(**settings).partial_fit(rows), 3
        )
        batch = GaussianMixture(ours.n_components_, random_state=0)
        batch_seconds = best_seconds(lambda rows=train, em=batch: em.fit(rows), 3)
        difference = ours.score(test) - batch.score(test)
        cells.append(f"{batch_seconds / seconds:.0f} ({difference:+.2f})")
    return cells


HEADINGS = {
    "D": ("D", "{:.0f}"),
    "ratio": ("frequencies fall by", "{:.1f}"),
    "K": ("K", "{:.0f}"),
    "chunk": ("partial_fit, rows/s", "{:,.0f}"),
    "learn_one": ("learn_one, us", "{:.1f}"),
    "partial_fit": ("partial_fit of a row, us", "{:.1f}"),
    "gaussian": ("river MultivariateGaussian, us", "{:.0f}"),
    "precision": ("river EmpiricalPrecision, us", "{:.0f}"),
    "kmeans": ("river KMeans, us", "{:.0f}"),
    "batch": ("GaussianMixture.fit, s", "{:.2f}"),
    "iterations": ("its iterations", "{:.0f}"),
    "faster": ("times faster than it", "{:.0f}"),
    "likelihood": ("held-out nats against it", "{:+.2f}"),
}


def print_table(results: list[dict[str, float]]) -> None:
    """Results as a Markdown table."""
    print("| " + " | ".join(title for title, _ in HEADINGS.values()) + " |")
    print("|" + "---|" * len(HEADINGS))
    for result in results:
        cells = [form.format(result[name]) for name, (_, form) in HEADINGS.items()]
        print("| " + " | ".join(cells) + " |")


# Everything that compiles a kernel of mixtures and estimators, in parts.
EVERY_KERNEL = {
    "on import": """
import numpy as np
from figmn import *
rows = np.random.default_rng(0).normal(size=(1000, 3))
gaps = np.where(rows > 2.0, np.nan, rows)
""",
    "learning row by row, and answers": """
mixture = Mixture(3, delta=0.1).learn(gaps[:300]).merge(0, 1)
mixture.fill(gaps), mixture.infer(rows[:, :2], [0, 1]), mixture.log_density(rows[:2])
""",
    "chunks of 500 rows": "Mixture(3, scale=1.0, beta=0.0).learn(rows)",
    "estimators": """
IncrementalGaussianMixture().partial_fit(np.vstack([rows, rows + 5.0, rows - 5.0])).score(rows)
tracking = MixtureClassifier(half_life=100.0)
for half in (rows[:500], rows[500:]):
    tracking.partial_fit(half, half[:, 0] > 0.0, classes=[False, True]).predict(rows[:1])
MixtureRegressor().fit(rows[:, :2], rows[:, 2]).predict_quantiles(rows[:5, :2], [0.1, 0.9])
""",
    "many variables": """
rows = np.random.default_rng(0).normal(size=(1000, 300))
for beta in (0.0, 1e-3):
    mixture = Mixture(300, scale=1.0, beta=beta).learn(rows).learn_one(rows[0])
    mixture.log_density(rows), mixture.infer(rows[:50, 1:], range(1, 300)), mixture.fill(rows)
""",
}


def seconds_of(parts: Iterable[str], **environment: str) -> np.ndarray:
    """Seconds that each part of a Python program takes, in a process of its own."""
    lines = ["import time", "times = [time.perf_counter()]"]
    for part in parts:
        lines += [part, "times.append(time.perf_counter())"]
    source = "\n".join([*lines, "print(*times)"])
    result = subprocess.run(
        [sys.executable, "-c", source],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return np.diff([float(word) for word in result.stdout.split()])


def start_up() -> None:
    """Import time with warm caches, and the time of compiling everything once."""
    for module in ("figmn", "figmn.estimators"):
        seconds = min(seconds_of([f"import {module}"])[0] for _ in range(3))
        print(f"import {module}: {seconds:.2f} s")
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = (seconds_of(EVERY_KERNEL.values(), NUMBA_CACHE_DIR=cache) for _ in range(2))
    for name, seconds in zip(EVERY_KERNEL, cold - warm, strict=True):
        print(f"compiling once, {name}: {seconds:.1f} s")
    print(f"compiling once, in all: {(cold - warm).sum():.1f} s")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows to learn")
    parser.add_argument(
        "--dimensions", type=int, nargs="+", choices=SETTINGS, default=list(SETTINGS)
    )
    parser.add_argument(
        "--ratios", type=float, nargs="+", default=[1.0, 0.5], help="how frequencies fall"
    )
    parser.add_argument(
        "--layouts", type=int, default=0, help="compare with EM alone, on so many other layouts"
    )
    options = parser.parse_args()
    if options.layouts:
        layouts = range(1001, 1001 + options.layouts)
        print("times faster than EM (held-out nats), layouts " + ", ".join(map(str, layouts)))
        with threadpool_limits(limits=1):
            for n_features in options.dimensions:
                cells = compare_layouts(n_features, options.rows, layouts)
                print(f"| {n_features} | " + " | ".join(cells) + " |", flush=True)
        return
    start_up()
    results = []
    with threadpool_limits(limits=1):
        for n_features in options.dimensions:
            for ratio in options.ratios:
                print(f"measuring D = {n_features}, ratio {ratio} ...", file=sys.stderr)
                results.append(measure(n_features, options.rows, ratio))
    print_table(results)


if __name__ == "__main__":
    main()
