"""What the method does, for someone who does not know it: learning along a stream."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from figmn import Mixture, MixtureClassifier, MixtureRegressor
from paper.accuracy import shuffled
from paper.datasets import NAMES, load_dataset
from paper.experiment import (
    Experiment,
    Figure,
    Plan,
    Result,
    Results,
    Section,
    Table,
    Unit,
)
from paper.plots import Snapshot, growth
from paper.statistics import spread
from paper.text import plus_minus
from paper.typing import Array

_MOMENTS: Final = (60, 300, 1500, 6000)
_N_FOLDS: Final = 10


# -- Work ----------------------------------------------------------------------------------


def units(plan: Plan) -> list[Unit]:
    """The picture, a unit for each data set, and one for regression."""
    n_rows = None if plan.full else 150
    return [
        # The longest first, so that no core is left with it at the end.
        Unit("regression", {"task": "regression", "seed": plan.seed}),
        Unit("growth", {"task": "growth", "seed": plan.seed}),
        *(Unit(name, {"task": name, "seed": plan.seed, "n_rows": n_rows}) for name in NAMES),
    ]


def measure(task: str, seed: int, n_rows: int | None = None) -> Result:
    """Do one of the tasks: the picture, a data set by its name, or regression."""
    if task == "growth":
        return growing(seed)
    if task == "regression":
        return regression(seed)
    return predict_then_learn(task, seed, n_rows)


def growing(seed: int) -> Result:
    """A mixture at moments of a stream of rows along a spiral."""
    rows = spiral(seed)
    mixture = Mixture(2, delta=0.25, beta=0.02)
    moments = []
    start = 0
    for stop in _MOMENTS:
        mixture.learn(rows[start:stop])
        start = stop
        moments.append(
            {
                "means": mixture.means.tolist(),
                "covariances": mixture.covariances.tolist(),
                "weights": mixture.weights.tolist(),
            }
        )
    return {"moments": moments}


def spiral(seed: int) -> Array:
    """Rows of shape (6000, 2) along a noisy spiral, in random order."""
    rng = np.random.default_rng(seed)
    angle = 3.5 * np.pi * np.sqrt(rng.uniform(0.02, 1.0, _MOMENTS[-1]))
    rows: Array = np.column_stack([angle * np.cos(angle), angle * np.sin(angle)])
    return rows + 0.35 * rng.normal(size=rows.shape)


def predict_then_learn(name: str, seed: int, n_rows: int | None) -> Result:
    """Predict each of the first rows before learning it; the very first is only learnt."""
    X, y = shuffled(load_dataset(name), seed)
    X, y = X[:n_rows], y[:n_rows]
    model = MixtureClassifier().partial_fit(X[:1], y[:1])
    correct = []
    for row in range(1, len(y)):
        one = slice(row, row + 1)
        correct.append(bool(model.predict(X[one])[0] == y[row]))
        model.partial_fit(X[one], y[one])
    late = correct[len(correct) // 2 :]
    return {
        "rows": len(y),
        "accuracy": 100.0 * float(np.mean(correct)),
        "late_accuracy": 100.0 * float(np.mean(late)),
        "components": int(model.n_components_),
    }


def regression(seed: int) -> Result:
    """Ten folds of the diabetes data: error, and how often 90 % intervals hold the truth."""
    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order], y[order]
    models: dict[str, Any] = {
        "ours": MixtureRegressor(),
        "ridge": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))),
        "forest": RandomForestRegressor(random_state=seed),
    }
    errors: dict[str, list[float]] = {name: [] for name in models}
    inside: list[bool] = []
    for train, test in KFold(_N_FOLDS).split(X):
        fitted = {name: clone(model).fit(X[train], y[train]) for name, model in models.items()}
        for name, model in fitted.items():
            squares = (model.predict(X[test]) - y[test]) ** 2
            errors[name].append(float(np.sqrt(np.mean(squares))))
        low, high = fitted["ours"].predict_quantiles(X[test], [0.05, 0.95]).T
        inside += ((low < y[test]) & (y[test] < high)).tolist()
    return {"rows": len(y), "errors": errors, "inside": 100.0 * float(np.mean(inside))}


# -- What came out -------------------------------------------------------------------------


def _figure(plan: Plan, results: Results) -> Figure:
    rows = spiral(plan.seed)
    moments = results["growth"]["moments"]
    snapshots = [
        Snapshot(rows[:stop], *(np.array(moment[part]) for part in Snapshot._fields[1:]))
        for stop, moment in zip(_MOMENTS, moments, strict=True)
    ]
    return Figure(
        "growth",
        "A mixture growing on a stream of rows along a spiral (made up, delta = 0.25, "
        "beta = 0.02). Ellipses are components, at two standard deviations.",
        growth(snapshots),
    )


def _streams_table(results: Results) -> Table:
    def cells(name: str) -> tuple[str, ...]:
        r = results[name]
        return (
            name,
            f"{r['rows']}",
            f"{r['accuracy']:.1f}",
            f"{r['late_accuracy']:.1f}",
            f"{r['components']}",
        )

    return Table(
        "Classification along a stream: each row predicted, then learnt, by `MixtureClassifier()`",
        (
            "data set",
            "rows of the stream",
            "correct, all rows, %",
            "correct, second half, %",
            "components at the end",
        ),
        [cells(name) for name in NAMES],
    )


def _regression_table(results: Results) -> Table:
    r = results["regression"]
    errors = {name: plus_minus(spread(values)) for name, values in r["errors"].items()}
    return Table(
        f"Regression on scikit-learn's diabetes data, {r['rows']} rows, ten folds",
        ("what", "`MixtureRegressor()`, one pass", "ridge regression", "random forest"),
        [
            ("root mean squared error", errors["ours"], errors["ridge"], errors["forest"]),
            ("truth inside the 90 % interval, %", f"{r['inside']:.0f}", "-", "-"),
        ],
    )


def present(plan: Plan, results: Results) -> Section:
    """A picture and two tables."""
    return Section(
        "What it is: a mixture that grows as it learns",
        (
            "Each row is seen once. Left to itself, a model holds its first rows, up to 2048, "
            "and fits them together; the streams of this section are that short. With settings, "
            "as in the picture, it learns row after row: one that no component explains starts a "
            "new one, any other updates those that are there. The model knows how all "
            "variables hang together, so it can classify, predict numbers with error bars, fill "
            "in what is missing and flag outliers. This section is not from the paper.",
        ),
        (_figure(plan, results), _streams_table(results), _regression_table(results)),
    )


EXPERIMENT: Final = Experiment(
    "stream",
    "what the method does: a mixture growing, learning along a stream",
    units,
    measure,
    present,
    parallel=True,
    spared=("rl",),
)
