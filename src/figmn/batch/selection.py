"""How many components, and how much shrinkage: by the likelihood of rows left out.

The number of components climbs from one by splitting the heavier half of them
along their longest axes, or where they are flattest, so that each step starts from
the solution before. Nothing is random, and components go where rows are.
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
from figmn.batch.slices import Slices, cost, finished

_DIAGONALS: Final = (0.1, 0.3, 0.6)
_SPLIT_SHARE: Final = 0.5  # of the components, at each step
_LEAST_ROWS: Final = 8.0  # a component, on average and to be split
_ROWS_A_VARIABLE: Final = 2.0  # the same: with fewer a covariance says nothing of its own
_STEEPNESS: Final = 4.0  # of a split, against standard deviations along the axis
_FOLDS: Final = 4
_LITTLE_WORK: Final = 10**9  # products of entries, for the same
_PATIENCE: Final = 2  # steps without a gain, before the climb ends
_MOST_STEPS: Final = 14
_HOPELESS: Final = 10.0  # nats a column below which it no longer matters how far
_WIDE: Final = 9.0  # variances of the background, in those of all rows


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
    least_steps: int
    """Of a climb, before it is compared with others."""
    behind: float
    """Standard errors below the best of them, when it is given up."""
    tolerance: float
    """Of EM on the way: nats a row and column."""


THOROUGH: Final = Search(
    routes=(
        *(Route(Prior(rows)) for rows in (0.0, 1.0, 10.0, 100.0, 1000.0, np.inf)),
        *(Route(Prior(rows), flattest=True) for rows in (0.0, 10.0)),
    ),
    few_rows=1500,
    least_steps=5,
    behind=4.0,
    tolerance=5e-4,
)
"""For a fit that lasts."""

QUICK: Final = Search(
    routes=(
        *(Route(Prior(rows)) for rows in (0.0, 1.0, 100.0)),
        Route(Prior(0.0), flattest=True),
    ),
    few_rows=400,
    least_steps=3,
    behind=2.5,
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
    climbs = [_Climb(folds, route.with_diagonal(diagonal), most, search) for route in routes]
    climbs[0].keeps_models = len(climbs) == 1 and parsimony == 0.0
    choice = _best((yield from _raced(climbs, search)), parsimony)
    parameters = maximised((yield from _scatter_of_all(batch)), choice.route.prior)
    for _ in range(choice.steps):
        parameters = yield from _stepped(
            batch, parameters, choice.route, most, tolerance=0.5 * search.tolerance
        )
    if choice.background and (bound is None or len(parameters.weights) < bound):
        parameters = _with_background(batch, parameters)
    return Fitted(parameters, climbs[0].trials(choice.steps))


def most_components(n_rows: float, n_features: int) -> int:
    """How many components there are rows for."""
    least = max(_LEAST_ROWS, _ROWS_A_VARIABLE * n_features)
    return max(1, int(n_rows / least))


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
            total += float(left_out.weights @ _limited(joint[:, 0], left_out))
        totals.append(total)
    return _DIAGONALS[int(np.argmax(totals))]


def _limited(scores: Array, batch: Batch) -> Array:
    """Log densities, from where they do not fall further: one outlier must not decide alone."""
    limited: Array = np.maximum(scores, -_HOPELESS * batch.rows.shape[1])
    return limited


def _raced(climbs: list[_Climb], search: Search) -> Slices[list[Choice]]:
    """Choices along climbs that go up side by side, each until it falls behind or ends."""
    choices: list[Choice] = []
    while climbs:
        latest: list[Choice] = []
        for climb in climbs:
            latest += [(yield from climb.step())]
        choices += latest
        best = max(latest, key=_worth)
        climbs = [
            climb
            for climb, choice in zip(climbs, latest, strict=True)
            if not climb.is_over()
            and (choice.steps < search.least_steps or _loss(choice, best) <= search.behind)
        ]
    return choices


def _worth(choice: Choice) -> float:
    return float(choice.scores.mean())


def _loss(choice: Choice, best: Choice) -> float:
    """How much worse a choice is than the best, in standard errors of the difference."""
    losses = best.scores - choice.scores
    mean, error = float(losses.mean()), float(losses.std() / np.sqrt(len(losses)))
    if error == 0.0:
        return np.inf if mean > 0.0 else 0.0
    return mean / error


class _Climb:
    """A climb along one route, on all folds side by side, until it leads nowhere.

    Parameters
    ----------
    folds : list of Fold
    route : Route
    most : int
        Bound on the number of components.
    search : Search
    """

    def __init__(self, folds: list[Fold], route: Route, most: int, search: Search) -> None:
        self.folds, self.route, self.most, self.search = folds, route, most, search
        self.models = [maximised(fold.together, route.prior) for fold in folds]
        self.choices: list[Choice] = []
        self.keeps_models = False
        self._kept: list[list[Parameters]] = []

    def trials(self, step: int) -> tuple[Trial, ...]:
        """The models of a step, if they were kept."""
        if not self.keeps_models:
            return ()
        pairs = zip(self._kept[step], self.folds, strict=True)
        return tuple(Trial(model, fold.where) for model, fold in pairs)

    def step(self) -> Slices[Choice]:
        """One step up, but for the first time, and what it is worth."""
        if self.choices:
            for number, fold in enumerate(self.folds):
                self.models[number] = yield from _stepped(
                    fold.known,
                    self.models[number],
                    self.route,
                    self.most,
                    tolerance=self.search.tolerance,
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
        worth = weights * _limited(scores, folds[0].known) / weights.mean()
        return Choice(self.route, len(self.choices), asked, worth, size)

    def is_over(self) -> bool:
        """Whether the last steps have gained nothing, or led nowhere, or there is no more room."""
        choices = self.choices
        if len(choices) > _MOST_STEPS:
            return True
        if max(len(model.weights) for model in self.models) >= self.most:
            return True
        means = [_worth(choice) for choice in choices]
        stuck = any(after.size <= before.size for before, after in pairwise(choices[-_PATIENCE:]))
        return stuck or int(np.argmax(means)) < len(means) - _PATIENCE


def _best(choices: list[Choice], tolerated: float) -> Choice:
    """The best choice, or a smaller one within so many standard errors of it."""
    best = max(choices, key=_worth)
    near = [choice for choice in choices if _loss(choice, best) <= tolerated]
    smallest = min(choice.size for choice in near)
    return max((choice for choice in near if choice.size == smallest), key=_worth)


def _stepped(
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
    for k in heaviest[counts[heaviest] >= _LEAST_ROWS]:
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
