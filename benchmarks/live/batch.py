"""Fitting and predicting at once, beside scikit-learn."""

from __future__ import annotations

import argparse
import warnings
from typing import Final

import numpy as np
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from figmn import IncrementalGaussianMixture, MixtureClassifier
from live.data import make_rows
from quality.report import table
from timing import best_seconds

COUNTS: Final = (1, 2, 4, 8, 16, 32)
"""Components of which scikit-learn's mixture chooses by BIC."""

_REPEATS: Final = 3
_TRAINING, _ASKED = 5000, 10_000


def run(options: argparse.Namespace) -> None:
    """Print both comparisons."""
    print(predictions(_ASKED), flush=True)
    print("\n" + fits(), flush=True)


def predictions(n_rows: int) -> str:
    """Probabilities of six classes, beside a random forest of a hundred trees."""
    rows = make_rows(_TRAINING + n_rows, 36, 6)
    known, asked = rows.complete[:_TRAINING], rows.complete[_TRAINING:]
    lines = []
    for name, model in (
        ("MixtureClassifier", MixtureClassifier()),
        ("RandomForestClassifier(100)", RandomForestClassifier(100, n_jobs=1, random_state=0)),
    ):
        model.fit(known, rows.labels[:_TRAINING])
        right = 100.0 * np.mean(model.predict(asked) == rows.labels[_TRAINING:])
        seconds = best_seconds(lambda model=model: model.predict_proba(asked), _REPEATS)
        lines.append([name, f"{seconds:.3f}", f"{1e6 * seconds / n_rows:.1f}", f"{right:.1f}"])
    header = [f"predict_proba of {n_rows:,} rows, D = 36, 6 classes", "s", "us a row", "% right"]
    return table(header, lines)


def fits() -> str:
    """Fitting a data set, beside EM with numbers of components to choose from."""
    sets = {
        "iris": datasets.load_iris().data,
        "wine": datasets.load_wine().data,
        "cancer": datasets.load_breast_cancer().data,
        "digits": datasets.load_digits().data,
        "two columns": make_rows(_TRAINING, 2).complete,
    }
    header = [
        "data", "rows", "D", "fit, s", "K", "GaussianMixture for each K and BIC, s", "K by BIC",
        "its time over ours",
    ]  # fmt: skip
    IncrementalGaussianMixture().fit(make_rows(_TRAINING, 4, seed=1).complete)  # compiled
    lines = []
    for name, rows in sets.items():
        ours = IncrementalGaussianMixture()
        seconds = best_seconds(lambda rows=rows, ours=ours: ours.fit(rows), _REPEATS)
        other = best_seconds(lambda rows=rows: _chosen_by_bic(rows), _REPEATS)
        lines.append([
            *(name, f"{len(rows):,}", str(rows.shape[1]), f"{seconds:.3f}"),
            *(str(ours.n_components_), f"{other:.3f}", str(_chosen_by_bic(rows))),
            f"{other / seconds:.2f}",
        ])  # fmt: skip
    return table(header, lines)


def _chosen_by_bic(rows: np.ndarray) -> int:
    """How many components are best."""
    criteria = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for count in COUNTS:
            if count <= len(rows):
                model = GaussianMixture(count, random_state=0).fit(rows)
                criteria[count] = model.bic(rows)
    return min(criteria, key=criteria.__getitem__)
