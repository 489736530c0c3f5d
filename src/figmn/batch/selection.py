"""How many components, and how much shrinkage: by the likelihood of rows left out.

The number of components climbs from one (:mod:`figmn.batch.climb`) along several routes that
race each other: those that fall behind are given up.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from figmn._typing import Array, Index
from figmn.batch.climb import LEAST_ROWS, Choice, Climb, Fold, Route, limited, stepped
from figmn.batch.em import (
    Batch,
    Parameters,
    Prior,
    Scatter,
    maximised,
)
from figmn.batch.slices import Slices, finished

_DIAGONALS: Final = (0.1, 0.3, 0.6)
_ROWS_A_VARIABLE: Final = 2.0  # the same: with fewer a covariance says nothing of its own
_FOLDS: Final = 4
_LEAST_STEPS: Final = 5  # of a climb, before it is compared with others
_BEHIND: Final = 4.0  # standard errors below the best of them, when it is given up
_LITTLE_WORK: Final = 10**9  # products of entries, for the same
_WIDE: Final = 9.0  # variances of the background, in those of all rows


class Preferences(NamedTuple):
    """What is wanted of a mixture, beside explaining rows that it has not seen.

    Attributes
    ----------
    most : int or None
        Bound on the number of components.
    shrinkage : float or None
        How many rows the pooled covariance counts for in each component; chosen if None.
    parsimony : float
        Fewer components are preferred if they are worse by no more than so many
        standard errors.
    """

    most: int | None = None
    shrinkage: float | None = None
    parsimony: float = 1.0


class Trial(NamedTuple):
    """A mixture that was fitted like the one chosen, to other rows."""

    parameters: Parameters
    left_out: Index
    """The rows that it has not seen."""


class Fitted(NamedTuple):
    """The mixture chosen, and how it was tried."""

    parameters: Parameters
    trials: tuple[Trial, ...]
    """Kept where one route was tried, for a mixture that is to predict: without parsimony."""


class Search(NamedTuple):
    """How thoroughly to look."""

    routes: tuple[Route, ...]
    """Those to try, unless the shrinkage is given."""
    few_rows: int
    """Up to here every fold is left out in turn, beyond only the first."""
    tolerance: float
    """Of EM on the way: nats a row and column."""


THOROUGH: Final = Search(
    routes=(
        *(Route(Prior(rows)) for rows in (0.0, 1.0, 10.0, 100.0, 1000.0, np.inf)),
        *(Route(Prior(rows), flattest=True) for rows in (0.0, 10.0)),
    ),
    few_rows=1500,
    tolerance=5e-4,
)
"""For a fit that lasts."""

QUICK: Final = Search(
    routes=(
        *(Route(Prior(rows)) for rows in (0.0, 1.0, 100.0)),
        *(Route(Prior(rows), flattest=True) for rows in (0.0, 10.0)),
    ),
    few_rows=400,
    tolerance=1e-3,
)
"""For a fit that the next one will replace."""


def fitted(
    rows: Array, weights: Array, preferences: Preferences, search: Search = THOROUGH
) -> Slices[Fitted]:
    """The mixture that explains rows best which it has not seen.

    Parameters
    ----------
    rows : array of shape (N, D)
        Complete, in standard units. Which of them are left out depends on their order.
    weights : array of shape (N,)
    preferences : Preferences
    search : Search
    """
    bound, shrinkage, parsimony = preferences
    # What the weights are worth: as many equal ones would vary as little.
    batch = Batch(rows, weights * (weights.sum() / np.square(weights).sum()))
    supported = most_components(batch.weights.sum(), rows.shape[1])
    most = supported if bound is None else min(bound, supported)
    folds = yield from _folds(batch, search.few_rows)
    diagonal = yield from _diagonal(folds)
    routes = search.routes if shrinkage is None else (Route(Prior(shrinkage)),)
    climbs = [
        Climb(folds, route.with_diagonal(diagonal), most, search.tolerance) for route in routes
    ]
    climbs[0].keeps_models = len(climbs) == 1 and parsimony == 0.0
    choice = _best((yield from _raced(climbs)), parsimony)
    parameters = maximised((yield from _scatter_of_all(batch)), choice.route.prior)
    for _ in range(choice.steps):
        parameters = yield from stepped(
            batch, parameters, choice.route, most, tolerance=0.5 * search.tolerance
        )
    if choice.background and (bound is None or len(parameters.weights) < bound):
        parameters = _with_background(batch, parameters)
    pairs = zip(climbs[0].models_at(choice.steps), folds, strict=False)
    return Fitted(parameters, tuple(Trial(model, fold.where) for model, fold in pairs))


def most_components(n_rows: float, n_features: int) -> int:
    """How many components there are rows for."""
    least = max(LEAST_ROWS, _ROWS_A_VARIABLE * n_features)
    return max(1, int(n_rows / least))


def _folds(batch: Batch, few_rows: int) -> Slices[list[Fold]]:
    count, n_features = batch.rows.shape
    order: Index = np.random.default_rng(0).permutation(count)
    parts = [np.sort(order[first::_FOLDS]) for first in range(_FOLDS)]
    few = count <= few_rows and count * n_features**2 <= _LITTLE_WORK
    folds = []
    for part in parts if few else parts[:1]:
        known = batch.subset(np.setdiff1d(np.arange(count), part))
        left_out = batch.subset(part)
        together = yield from _scatter_of_all(known)
        joint = yield from left_out.log_joint_slices(_background(together))
        folds.append(Fold(known, left_out, part, together, joint[:, 0]))
    return folds


def _scatter_of_all(batch: Batch) -> Slices[Scatter]:
    """Moments of all rows as one component."""
    return (yield from batch.scatter_slices(np.ones((len(batch), 1))))


def _diagonal(folds: list[Fold]) -> Slices[float]:
    """How much of the pooled covariance is to be its diagonal, by rows left out."""
    totals = []
    for diagonal in _DIAGONALS:
        total = 0.0
        for _, left_out, _, together, _ in folds:
            one = maximised(together, Prior(np.inf, diagonal))
            joint = yield from left_out.log_joint_slices(one)
            total += float(left_out.weights @ limited(joint[:, 0], left_out))
        totals.append(total)
    return _DIAGONALS[int(np.argmax(totals))]


def _raced(climbs: list[Climb]) -> Slices[list[Choice]]:
    """Choices along climbs that go up side by side, each until it falls behind or ends."""
    choices: list[Choice] = []
    while climbs:
        latest: list[Choice] = []
        for climb in climbs:
            latest += [(yield from climb.step())]
        choices += latest
        best = max(latest, key=Choice.worth)
        climbs = [
            climb
            for climb, choice in zip(climbs, latest, strict=True)
            if not climb.is_over()
            and (choice.steps < _LEAST_STEPS or _loss(choice, best) <= _BEHIND)
        ]
    return choices


def _loss(choice: Choice, best: Choice) -> float:
    """How much worse a choice is than the best, in standard errors of the difference."""
    losses = best.scores - choice.scores
    mean, error = float(losses.mean()), float(losses.std() / np.sqrt(len(losses)))
    if error == 0.0:
        return np.inf if mean > 0.0 else 0.0
    return mean / error


def _best(choices: list[Choice], tolerated: float) -> Choice:
    """The best choice, or a smaller one within so many standard errors of it."""
    best = max(choices, key=Choice.worth)
    near = [choice for choice in choices if _loss(choice, best) <= tolerated]
    smallest = min(choice.size for choice in near)
    return max((choice for choice in near if choice.size == smallest), key=Choice.worth)


def _background(together: Scatter) -> Parameters:
    """One wide component about all rows."""
    means, covariances, weights = maximised(together, Prior(1.0))
    return Parameters(means, _WIDE * covariances, weights)


def _with_background(batch: Batch, parameters: Parameters) -> Parameters:
    """The mixture with a wide component that counts for one row."""
    wide = _background(finished(_scatter_of_all(batch)))
    share = 1.0 / (1.0 + len(batch))
    return Parameters(
        np.vstack([parameters.means, wide.means]),
        np.concatenate([parameters.covariances, wide.covariances]),
        np.append((1.0 - share) * parameters.weights, share),
    )
