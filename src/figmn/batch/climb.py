"""One climb: components split step by step, on several folds of rows side by side.

Each step splits the heavier half of the components along their longest axes, or where they
are flattest, and goes on by EM, so that it starts from the solution before. Nothing is random,
and components go where rows are.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from figmn._typing import Array, Index
from figmn.batch.em import (
    FLOOR,
    Batch,
    Parameters,
    Prior,
    Scatter,
    converged,
    maximised,
    normalised,
)
from figmn.batch.slices import Slices, cost

LEAST_ROWS: Final = 8.0
"""A component, on average and to be split."""

_SPLIT_SHARE: Final = 0.5  # of the components, at each step
_STEEPNESS: Final = 4.0  # of a split, against standard deviations along the axis
_PATIENCE: Final = 2  # steps without a gain, before the climb ends
_MOST_STEPS: Final = 14
_HOPELESS: Final = 10.0  # nats a column below which it no longer matters how far


class Route(NamedTuple):
    """How to climb."""

    prior: Prior
    flattest: bool = False
    """Whether components are split where they are flattest, not where they are longest.

    As where a variable has few values: it is in these that its rows fall apart.
    """

    def with_diagonal(self, diagonal: float) -> Route:
        """The same for another share of the diagonal in the pooled covariance."""
        return self._replace(prior=self.prior._replace(diagonal=diagonal))


class Choice(NamedTuple):
    """A point of a climb, and what it is worth."""

    route: Route
    steps: int
    background: bool
    """Whether rows that were left out ask for a wide component of one row's weight."""
    scores: Array
    """Log densities of rows that were left out, none of them hopelessly low."""
    size: float
    """Number of components, on average over the folds."""

    def worth(self) -> float:
        """Mean of the scores."""
        return float(self.scores.mean())


class Fold(NamedTuple):
    """Rows to learn and rows to judge by."""

    known: Batch
    left_out: Batch
    where: Index
    """Which rows are left out."""
    together: Scatter
    """Moments of all the known rows."""
    wide: Array
    """Log densities of the rows left out under the background."""


def limited(scores: Array, batch: Batch) -> Array:
    """Log densities, from where they do not fall further: one outlier must not decide alone."""
    bounded: Array = np.maximum(scores, -_HOPELESS * batch.rows.shape[1])
    return bounded


class Climb:
    """A climb along one route, on all folds side by side, until it leads nowhere.

    Parameters
    ----------
    folds : list of Fold
    route : Route
    most : int
        Bound on the number of components.
    tolerance : float
        Of EM: nats a row and column.
    """

    def __init__(self, folds: list[Fold], route: Route, most: int, tolerance: float) -> None:
        self.folds, self.route, self.most, self.tolerance = folds, route, most, tolerance
        self.models = [maximised(fold.together, route.prior) for fold in folds]
        self.choices: list[Choice] = []
        self.keeps_models = False
        self._kept: list[list[Parameters]] = []

    def models_at(self, step: int) -> list[Parameters]:
        """The models of the folds after some steps, if they were kept."""
        return self._kept[step] if self.keeps_models else []

    def step(self) -> Slices[Choice]:
        """One step up, but for the first time, and what it is worth."""
        if self.choices:
            for number, fold in enumerate(self.folds):
                self.models[number] = yield from stepped(
                    fold.known,
                    self.models[number],
                    self.route,
                    self.most,
                    tolerance=self.tolerance,
                )
        if self.keeps_models:
            self._kept.append(self.models.copy())
        densities = []
        for fold, model in zip(self.folds, self.models, strict=True):
            joint = yield from fold.left_out.log_joint_slices(model)
            densities.append(normalised(joint)[1])
        self.choices.append(self._choice(np.concatenate(densities)))
        return self.choices[-1]

    def _choice(self, plain: Array) -> Choice:
        """What the models are worth, by the log densities of rows left out."""
        folds, models = self.folds, self.models
        wide = np.concatenate([fold.wide for fold in folds])
        weights = np.concatenate([fold.left_out.weights for fold in folds])
        share = 1.0 / (1.0 + len(folds[0].known))
        scores = np.logaddexp(np.log1p(-share) + plain, np.log(share) + wide)
        asked = bool(weights @ scores > weights @ plain)
        size = float(np.mean([len(model.weights) for model in models]))
        worth = weights * limited(scores, folds[0].known) / weights.mean()
        return Choice(self.route, len(self.choices), asked, worth, size)

    def is_over(self) -> bool:
        """Whether the last steps have gained nothing, or led nowhere, or there is no more room."""
        choices = self.choices
        if len(choices) > _MOST_STEPS:
            return True
        if max(len(model.weights) for model in self.models) >= self.most:
            return True
        means = [choice.worth() for choice in choices]
        stuck = any(after.size <= before.size for before, after in pairwise(choices[-_PATIENCE:]))
        return stuck or int(np.argmax(means)) < len(means) - _PATIENCE


def stepped(
    batch: Batch, parameters: Parameters, route: Route, most: int, *, tolerance: float
) -> Slices[Parameters]:
    """One step of a climb: the heavier half of the components is split."""
    shares = yield from _split(batch, parameters, most, flattest=route.flattest)
    return (yield from converged(batch, shares, route.prior, tolerance=tolerance))


def _split(batch: Batch, parameters: Parameters, most: int, *, flattest: bool) -> Slices[Array]:
    """Shares of the rows, of shape (N, K'), after the heavier half was split."""
    shares = normalised((yield from batch.log_joint_slices(parameters)))[0]
    counts = batch.weights @ shares
    room = max(0, most - len(counts))
    n_split = min(max(1, round(_SPLIT_SHARE * len(counts))), room)
    heaviest = np.argsort(-counts, kind="stable")[:n_split]
    halves = []
    for k in heaviest[counts[heaviest] >= LEAST_ROWS]:
        apart, covariance = batch.rows - parameters.means[k], parameters.covariances[k]
        if flattest:
            along = _along_flattest(apart, covariance, batch.weights * shares[:, k])
        else:
            along = _along_longest(apart, covariance)
        upper = shares[:, k] / (1.0 + np.exp(-np.clip(_STEEPNESS * along, -500.0, 500.0)))
        shares[:, k] -= upper
        halves.append(upper)
        yield cost(10.0 * batch.rows.shape[1] ** 3 + batch.rows.size)
    return np.column_stack([shares, *halves])


def _along_longest(apart: Array, covariance: Array) -> Array:
    """Where rows are along the longest axis of a component, in standard deviations."""
    variances, axes = np.linalg.eigh(covariance)
    along: Array = apart @ axes[:, -1] / np.sqrt(variances[-1])
    return along


def _along_flattest(apart: Array, covariance: Array, weights: Array) -> Array:
    """The same for the variable of least kurtosis: two clusters far apart have the least."""
    standard = apart / np.sqrt(np.diagonal(covariance))
    squares = standard**2
    kurtosis = (weights @ squares**2) / np.maximum(weights @ squares, FLOOR) ** 2
    along: Array = standard[:, np.argmin(kurtosis)]
    return along
