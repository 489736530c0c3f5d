"""What takes part: how a model is made, asked about a row, and handed it to learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from figmn import (
    IncrementalGaussianMixture,
    MixtureClassifier,
    MixtureImputer,
    MixtureOutlierDetector,
    MixtureRegressor,
)
from live.data import Rows

Item = tuple[Any, ...]


class Entrant(NamedTuple):
    """A kind of model, and a question.

    Attributes
    ----------
    name : str
    make : callable
        A model that has learnt nothing.
    ask : callable
        Takes a model and a row.
    learn : callable
        Takes a model, and a row with what belongs to it.
    items : callable
        Rows one by one, as the two above take them.
    chunk : callable or None
        All rows at once, as ``learn`` takes them, if it does.
    at_once : bool
        Whether it answers before it has learnt a row.
    most_rows : int or None
        It is too slow for more.
    """

    name: str
    make: Callable[[], Any]
    ask: Callable[[Any, Any], object]
    learn: Callable[..., object]
    items: Callable[[Rows], list[Item]]
    chunk: Callable[[Rows], Item] | None = None
    at_once: bool = False
    most_rows: int | None = None


def _ours(
    name: str, model: type, ask: Callable[[Any, Any], object], *parts: str, **settings: Any
) -> Entrant:
    """An estimator that learns the named parts of the rows."""

    def chunk(rows: Rows) -> Item:
        return tuple(getattr(rows, part) for part in parts)

    def items(rows: Rows) -> list[Item]:
        arrays = chunk(rows)
        return [tuple(each[t : t + 1] for each in arrays) for t in range(len(arrays[0]))]

    return Entrant(name, lambda: model(**settings), ask, model.partial_fit, items, chunk)


def _asks(question: str, **arguments: Any) -> Callable[[Any, Any], object]:
    return lambda model, row: getattr(model, question)(row, **arguments)


KINDS: Final[dict[str, Entrant]] = {
    "density": _ours("density", IncrementalGaussianMixture, _asks("score_samples"), "complete"),
    "classifier": _ours(
        "classifier", MixtureClassifier, _asks("predict_proba"), "complete", "labels"
    ),
    "regressor": _ours(
        "regressor", MixtureRegressor, _asks("predict", return_std=True), "complete", "target"
    ),
    "quantiles": _ours(
        "quantiles", MixtureRegressor, _asks("predict_quantiles"), "complete", "target"
    ),
    "imputer": _ours("imputer", MixtureImputer, _asks("transform"), "gappy"),
    "outliers": _ours("outliers", MixtureOutlierDetector, _asks("score_samples"), "complete"),
}
"""The estimators, at their defaults."""


def as_dictionaries(rows: np.ndarray) -> list[dict[int, float]]:
    """Rows as river takes them."""
    return [dict(enumerate(row.tolist())) for row in rows]


def _labelled(rows: Rows) -> list[Item]:
    return list(zip(as_dictionaries(rows.complete), rows.labels.tolist(), strict=True))


def _between_0_and_1(rows: Rows) -> list[Item]:
    """Rows in the range that river's trees expect, which is known to them beforehand."""
    low, high = rows.complete.min(axis=0), rows.complete.max(axis=0)
    return [(row,) for row in as_dictionaries((rows.complete - low) / (high - low))]


def peers(kind: str, most_rows: int) -> list[Entrant]:
    """River's models for the same question, at their defaults."""
    from river import anomaly, forest, naive_bayes, tree

    def classifier(name: str, make: Callable[[], Any], most: int = most_rows) -> Entrant:
        ask, learn = _asks("predict_proba_one"), type(make()).learn_one
        return Entrant(name, make, ask, learn, _labelled, at_once=True, most_rows=most)

    if kind == "classifier":
        return [
            classifier("river GaussianNB", naive_bayes.GaussianNB),
            classifier(
                "river HoeffdingAdaptiveTree",
                lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=1),
            ),
            classifier(
                "river ARF", lambda: forest.ARFClassifier(seed=1), min(most_rows, FOREST_ROWS)
            ),
        ]
    if kind == "outliers":
        trees = anomaly.HalfSpaceTrees
        return [
            Entrant(
                *("river HalfSpaceTrees", lambda: trees(seed=1), _asks("score_one")),
                *(trees.learn_one, _between_0_and_1),
                at_once=True,
                most_rows=most_rows,
            )
        ]
    return []


FOREST_ROWS: Final = 2000
