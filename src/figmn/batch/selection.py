"""How many components, and how much shrinkage: by the likelihood of rows left out.

The number of components climbs from one by splitting the heavier half of them
along their longest axes, or where they are flattest, so that each step starts from
the solution before. Nothing is random, and components go where rows are.
"""

from __future__ import annotations

from collections.abc import Sequence
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

_PRIORS: Final = (0.0, 1.0, 10.0, 100.0, 1000.0, np.inf)  # rows
_FLATTEST_PRIORS: Final = (0.0, 10.0)
_DIAGONALS: Final = (0.1, 0.3, 0.6)
_SPLIT_SHARE: Final = 0.5  # of the components, at each step
_LEAST_ROWS: Final = 8.0  # a component, on average and to be split
_ROWS_A_VARIABLE: Final = 2.0  # the same: with fewer a covariance says nothing of its own
_STEEPNESS: Final = 4.0  # of a split, against standard deviations along the axis
_FOLDS: Final = 4
_FEW_ROWS: Final = 1500  # up to here every fold is left out in turn, beyond only the first
_LITTLE_WORK: Final = 10**9  # products of entries, for the same
_PATIENCE: Final = 2  # steps without a gain, before the climb ends
_LEAST_STEPS: Final = 5  # of a climb, before it is compared with others
_BEHIND: Final = 4.0  # standard errors below the best of them, when it is given up
_MOST_STEPS: Final = 14
_MOST_RIVALS: Final = 3  # routes to try when more rows have come
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


class Found(NamedTuple):
    """A mixture, and how it was found."""

    parameters: Parameters
    route: Route
    background: bool
    """Whether its last component is a wide one that counts for one row."""
    rivals: tuple[Route, ...]
    """Routes that came close to the best, which is among them."""


def fitted(
    rows: Array,
    weights: Array,
    preferences: Preferences,
    routes: Sequence[Route] = (),
) -> Slices[Found]:
    """The mixture that explains rows best which it has not seen.

    Parameters
    ----------
    rows : array of shape (N, D)
        Complete, in standard units. Their order makes no difference but to rounding.
    weights : array of shape (N,)
    preferences : Preferences
    routes : sequence of Route
        Those to try, instead of all.
    """
    bound, shrinkage, parsimony = preferences
    order = np.lexsort(rows.T)
    # What the weights are worth: as many equal ones would vary as little.
    worth = weights.sum() / np.square(weights).sum()
    batch = Batch(rows[order], weights[order] * worth)
    supported = most_components(batch.weights.sum(), rows.shape[1])
    most = supported if bound is None else min(bound, supported)
    yield _making(batch)
    folds = yield from _folds(batch)
    diagonal = yield from _diagonal(folds)
    tried = [route.with_diagonal(diagonal) for route in routes or _routes(shrinkage)]
    climbs = [_Climb(folds, route, most) for route in tried]
    choices = yield from _raced(climbs)
    choice = _best(choices, parsimony)
    parameters = maximised(batch.scatter_of_all(), choice.route.prior)
    for _ in range(choice.steps):
        parameters = yield from _stepped(batch, parameters, choice.route, most, tolerance=2.5e-4)
    background = choice.background and (bound is None or len(parameters.weights) < bound)
    if background:
        parameters = with_background(batch, parameters)
    return Found(parameters, choice.route, background, _rivals(choices, choice))


def refined(rows: Array, weights: Array, before: Parameters, found: Found) -> Slices[Found]:
    """A mixture that was found among fewer rows, by rounds of EM from there on.

    Parameters
    ----------
    rows : array of shape (N, D)
        Complete, in standard units.
    weights : array of shape (N,)
    before : Parameters
        What has become of the mixture, in the same units.
    found : Found
    """
    worth = weights.sum() / np.square(weights).sum()
    batch = Batch(rows, weights * worth)
    yield _making(batch)
    joint = yield from batch.log_joint_slices(before)
    shares = normalised(joint)[0]
    parameters = yield from converged(batch, shares, found.route.prior, tolerance=5e-4)
    if found.background:
        parameters = with_background(batch, parameters)
    return found._replace(parameters=parameters)


def _routes(shrinkage: float | None) -> list[Route]:
    """Those to try, or the one for a shrinkage that is given."""
    if shrinkage is not None:
        return [Route(Prior(shrinkage))]
    longest = [Route(Prior(rows)) for rows in _PRIORS]
    return longest + [Route(Prior(rows), flattest=True) for rows in _FLATTEST_PRIORS]


def _rivals(choices: list[Choice], choice: Choice) -> tuple[Route, ...]:
    """The routes that led furthest, the one chosen among them."""
    best = dict.fromkeys(dict.fromkeys(each.route for each in choices), -np.inf)
    for each in choices:
        best[each.route] = max(best[each.route], _worth(each))
    best[choice.route] = np.inf
    return tuple(sorted(best, key=best.__getitem__, reverse=True)[:_MOST_RIVALS])


def most_components(n_rows: float, n_features: int) -> int:
    """How many components there are rows for."""
    least = max(_LEAST_ROWS, _ROWS_A_VARIABLE * n_features)
    return max(1, int(n_rows / least))


class Fold(NamedTuple):
    """Rows to learn and rows to judge by."""

    known: Batch
    left_out: Batch
    together: Scatter
    """Moments of all the known rows."""
    wide: Array
    """Log densities of the rows left out under the background."""


def _making(batch: Batch) -> float:
    """What it costs to make a batch."""
    return cost(10.0 * len(batch) * batch.rows.shape[1] ** 2)


def _folds(batch: Batch) -> Slices[list[Fold]]:
    count, n_features = batch.rows.shape
    order: Index = np.random.default_rng(0).permutation(count)
    parts = [np.sort(order[first::_FOLDS]) for first in range(_FOLDS)]
    few = count <= _FEW_ROWS and count * n_features**2 <= _LITTLE_WORK
    folds = []
    for part in parts if few else parts[:1]:
        known = batch.subset(np.setdiff1d(np.arange(count), part))
        yield _making(known)
        left_out = batch.subset(part)
        yield _making(left_out)
        together = yield from known.scatter_slices(np.ones((len(known), 1)))
        joint = yield from left_out.log_joint_slices(_background(together))
        folds.append(Fold(known, left_out, together, joint[:, 0]))
    return folds


def _diagonal(folds: list[Fold]) -> Slices[float]:
    """How much of the pooled covariance is to be its diagonal, by rows left out."""
    totals = []
    for diagonal in _DIAGONALS:
        total = 0.0
        for _, left_out, together, _ in folds:
            one = maximised(together, Prior(np.inf, diagonal))
            joint = yield from left_out.log_joint_slices(one)
            total += float(left_out.weights @ _limited(joint[:, 0], left_out))
        totals.append(total)
    return _DIAGONALS[int(np.argmax(totals))]


def _limited(scores: Array, batch: Batch) -> Array:
    """Log densities, from where they do not fall further: one outlier must not decide alone."""
    limited: Array = np.maximum(scores, -_HOPELESS * batch.rows.shape[1])
    return limited


def _raced(climbs: list[_Climb]) -> Slices[list[Choice]]:
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
            and (choice.steps < _LEAST_STEPS or _loss(choice, best) <= _BEHIND)
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
    """

    def __init__(self, folds: list[Fold], route: Route, most: int) -> None:
        self.folds, self.route, self.most = folds, route, most
        self.models = [maximised(fold.together, route.prior) for fold in folds]
        self.choices: list[Choice] = []

    def step(self) -> Slices[Choice]:
        """One step up, but for the first time, and what it is worth."""
        if self.choices:
            for number, fold in enumerate(self.folds):
                self.models[number] = yield from _stepped(
                    fold.known, self.models[number], self.route, self.most, tolerance=5e-4
                )
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


def with_background(batch: Batch, parameters: Parameters) -> Parameters:
    """The mixture with a wide component that counts for one row."""
    wide = _background(batch.scatter_of_all())
    share = 1.0 / (1.0 + len(batch))
    return Parameters(
        np.vstack([parameters.means, wide.means]),
        np.concatenate([parameters.covariances, wide.covariances]),
        np.append((1.0 - share) * parameters.weights, share),
    )
