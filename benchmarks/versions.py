"""Two versions of the package on the same random streams, and whether they learn the same.

    python benchmarks/versions.py ../before/src [--streams 20]

runs each version in a process of its own and prints, for each kind of model, the largest
relative difference of any answer and how many streams were answered alike bit for bit. Streams
are of clusters that are told apart, so that rounding is not what decides.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Answers = dict[str, np.ndarray]
OWN = Path(__file__).parents[1] / "src"


def stream(rng: np.random.Generator, n_rows: int, n_features: int) -> tuple[np.ndarray, ...]:
    """Rows of clusters in units of their own, and the cluster of each."""
    n_clusters = int(rng.integers(2, 6))
    centers = rng.normal(size=(n_clusters, n_features)) * 8.0
    shapes = rng.normal(size=(n_clusters, n_features, n_features)) / np.sqrt(n_features)
    which = rng.integers(n_clusters, size=n_rows)
    rows = centers[which] + np.einsum(
        "nij,nj->ni", shapes[which], rng.normal(size=(n_rows, n_features))
    )
    units = 10.0 ** rng.uniform(-3, 3, n_features)
    return rows * units, which


def with_gaps(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """Rows of which a tenth is missing."""
    return np.where(rng.random(rows.shape) < 0.1, np.nan, rows)


def in_chunks(rng: np.random.Generator, count: int) -> Iterator[slice]:
    """Stretches of random lengths."""
    start = 0
    while start < count:
        length = int(rng.choice([1, 7, 100, 900]))
        yield slice(start, start + length)
        start += length


def mixture(rng: np.random.Generator, n_features: int, n_rows: int, **settings: Any) -> Answers:
    """A mixture by hand or by default; all that it answers."""
    from figmn import Mixture

    rows, _ = stream(rng, n_rows, n_features)
    asked = rows[-40:]
    gaps, weighted = settings.pop("gaps", False), settings.pop("weighted", False)
    rows = with_gaps(rng, rows) if gaps else rows
    weights = rng.uniform(0.0, 3.0, n_rows) if weighted else np.ones(n_rows)
    model = Mixture(n_features, **settings)
    for part in in_chunks(rng, n_rows):
        model.learn(rows[part], weights[part])
    half = n_features // 2
    answer = model.infer(asked[:, :half], known=range(half), wanted=range(half, n_features))
    return {
        "weights": model.weights,
        "means": model.means,
        "covariances": model.covariances if n_features < 50 else np.zeros(0),
        "log_density": model.log_density(asked),
        "gappy": model.log_density(with_gaps(rng, asked)),
        "posteriors": model.posteriors(asked),
        "mean": answer.mean(),
        "std": answer.std(),
        "one": model.infer(asked[:1, :half], range(half), range(half, n_features)).mean(),
    }


def estimator(rng: np.random.Generator, name: str, n_rows: int, **settings: Any) -> Answers:
    """An estimator, fitted or fed in chunks."""
    import figmn

    fit, gaps = settings.pop("fit", False), settings.pop("gaps", False)
    n_features = int(rng.integers(2, 8))
    rows, which = stream(rng, n_rows, n_features)
    asked = rows[-40:]
    rows = with_gaps(rng, rows) if gaps else rows
    model = getattr(figmn, name)(**settings)
    targets: tuple[np.ndarray, ...] = ()
    if name == "MixtureClassifier":
        targets = (which % 3,)
    if name == "MixtureRegressor":
        targets = (asked.std() * np.sin(which) + rng.normal(size=n_rows),)
    if fit:
        model.fit(rows, *targets)
    else:
        for part in in_chunks(rng, n_rows):
            model.partial_fit(rows[part], *(values[part] for values in targets))
    questions = ("predict_proba", "score_samples", "predict", "transform", "predict_quantiles")
    answers = {q: np.asarray(getattr(model, q)(asked)) for q in questions if hasattr(model, q)}
    return (
        {**answers, "one": np.asarray(model.score_samples(asked[:1]))}
        if (hasattr(model, "score_samples"))
        else answers
    )


BY_HAND = {"delta": 0.5, "beta": 1e-6}
CASES: dict[str, Callable[[np.random.Generator], Answers]] = {
    "mixture, row by row and strides": lambda rng: mixture(
        rng, int(rng.integers(2, 12)), 3000, **BY_HAND
    ),
    "mixture, gaps, weights": lambda rng: mixture(
        rng, 5, 1500, gaps=True, weighted=True, **BY_HAND
    ),
    "mixture, the printed rule": lambda rng: mixture(rng, 4, 1500, update="paper", **BY_HAND),
    "mixture, half-life, pruned": lambda rng: mixture(
        rng, 4, 3000, half_life=500.0, prune_age=100, prune_mass=2.0, **BY_HAND
    ),
    "mixture, bounded": lambda rng: mixture(rng, 3, 2000, max_components=3, **BY_HAND),
    "mixture, defaults, warm-up": lambda rng: mixture(rng, 4, 700),
    "mixture, defaults, beyond": lambda rng: mixture(rng, 4, 4000),
    "mixture, defaults, gaps": lambda rng: mixture(rng, 4, 1200, gaps=True),
    "mixture, blocks": lambda rng: mixture(rng, 260, 1500, delta=1.0, beta=1e-12, scale=8.0),
    "mixture, one block": lambda rng: mixture(rng, 260, 900, delta=1.0, beta=0.0, scale=8.0),
    "mixture, blocks, half-life": lambda rng: mixture(
        rng, 256, 600, delta=1.0, beta=1e-12, scale=8.0, half_life=200.0
    ),
    **{
        f"{name}{', fit' if fit else ''}{', by hand' if settings else ''}": (
            lambda rng, name=name, fit=fit, settings=settings: estimator(
                rng, name, 1500, fit=fit, **settings
            )
        )
        for name in (
            "IncrementalGaussianMixture",
            "MixtureClassifier",
            "MixtureRegressor",
            "MixtureImputer",
            "MixtureOutlierDetector",
        )
        for fit in (False, True)
        for settings in ({}, BY_HAND)
    },
    "MixtureClassifier, half-life": lambda rng: estimator(
        rng, "MixtureClassifier", 1500, half_life=300.0
    ),
    "MixtureImputer, gaps": lambda rng: estimator(rng, "MixtureImputer", 1500, gaps=True),
}


def answers(n_streams: int, only: str) -> dict[str, list[Answers]]:
    """All answers of the version that is imported."""
    return {
        name: [case(np.random.default_rng([seed, 7])) for seed in range(n_streams)]
        for name, case in CASES.items()
        if only in name
    }


def answers_of(source: Path, n_streams: int, only: str) -> dict[str, list[Answers]]:
    """All answers of the version in a folder, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers"
        environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "--write", str(path), "--streams", str(n_streams)]
        subprocess.run([*command, "--only", only], env=environment, check=True)
        return pickle.loads(path.read_bytes())


def difference(one: Answers, other: Answers) -> float:
    """Largest difference of any answer, relative to the largest number in it."""
    worst = 0.0
    for name, values in one.items():
        if values.shape != other[name].shape:
            return np.inf
        known = np.isfinite(values)
        if not np.array_equal(known, np.isfinite(other[name])):
            return np.inf
        if known.any():
            apart = np.abs(values[known] - other[name][known]).max()
            worst = max(worst, float(apart / max(np.abs(values[known]).max(), 1e-300)))
    return worst


def main() -> None:
    """Compare, or write the answers of one version."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "before", nargs="?", type=Path, help="the src folder of the version before"
    )
    parser.add_argument("--streams", type=int, default=10, help="a kind of model (default: 10)")
    parser.add_argument("--only", default="", help="kinds of models whose names hold this text")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        options.write.write_bytes(pickle.dumps(answers(options.streams, options.only)))
        return
    if options.before is None:
        parser.error("name the src folder of the version to compare with")
    before, now = (
        answers_of(source, options.streams, options.only) for source in (options.before, OWN)
    )
    print(f"{'':45s}{'largest difference':>20s}{'bit for bit':>16s}")
    for name in before:
        pairs = list(zip(before[name], now[name], strict=True))
        apart = [difference(one, other) for one, other in pairs]
        alike = sum(
            all(np.array_equal(one[key], other[key], equal_nan=True) for key in one)
            for one, other in pairs
        )
        print(f"{name:45s}{max(apart):20.1e}{alike:10d} of {len(pairs)}")


if __name__ == "__main__":
    main()
