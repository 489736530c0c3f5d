"""How often outcomes stay below what is predicted of them, and quantiles that allow for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from figmn._typing import AnyArray, Array
from figmn.mixture import Mixture

_FEW_ROWS: Final = 1000  # up to here five folds are left out in turn, and else two
_FEW_A_COLUMN: Final = 20  # the same: half the rows would make a much worse model
_EXTREME: Final = 1e-9
_TRUST: Final = 20.0  # rows that the predictive distribution itself counts for


class Calibration(NamedTuple):
    r"""Where known outcomes fell in their predictive distributions.

    With :math:`u_i = F(y_i \mid x_i)`, the share of outcomes with :math:`u_i \le u` would be
    :math:`u` if the distributions were right. A quantile of probability q is therefore
    taken where the share, with :math:`n_0` rows for the distributions being right, is q:

    .. math:: \frac{n_0 u + \sum_i a_i [u_i \le u]}{n_0 + \sum_i a_i} = q

    Attributes
    ----------
    levels : array of shape (N, M)
        The :math:`u_i` of each output.
    weights : array of shape (N,)
    """

    levels: Array
    weights: Array

    def adjusted(self, probability: float) -> Array:
        """Probabilities to ask of the predictive distributions instead, of shape (M,)."""
        return np.array([self._adjusted(probability, column) for column in self.levels.T])

    def _adjusted(self, probability: float, levels: Array) -> float:
        known = ~np.isnan(levels)
        levels, weights = levels[known], self.weights[known]
        order = np.argsort(levels)
        places = np.concatenate([[0.0], levels[order], [1.0]])
        counts = np.concatenate([[0.0], np.cumsum(weights[order]), [weights.sum()]])
        shares = (_TRUST * places + counts) / (_TRUST + weights.sum())
        # Outcomes that nothing predicted have levels of 0 or 1, where no quantile is finite.
        return float(np.clip(np.interp(probability, shares, places), _EXTREME, 1.0 - _EXTREME))


def calibrated(mixture: Mixture, n_outputs: int) -> Calibration | None:
    """Calibration on the rows that a mixture keeps, or None if it keeps none.

    In the warm-up each row is judged by a mixture that has not seen it. Later the sample
    is a small part of what the mixture has learnt, and is judged by the mixture itself.

    Parameters
    ----------
    mixture : Mixture
        Over inputs, then ``n_outputs`` outputs.
    n_outputs : int
    """
    kept = mixture.known_rows()
    if kept is None:
        return None
    rows, weights = kept
    levels = np.full((len(rows), n_outputs), np.nan)
    if mixture.n_learnt > len(rows):
        levels[:] = _levels(mixture, rows, n_outputs)
    else:
        for left_out in _folds(*rows.shape):
            others = _fitted_alike(mixture, rows[~left_out], weights[~left_out])
            levels[left_out] = _levels(others, rows[left_out], n_outputs)
    return Calibration(levels, weights / weights.mean())


def _levels(mixture: Mixture, rows: Array, n_outputs: int) -> Array:
    n_inputs = mixture.n_features - n_outputs
    columns = np.arange(mixture.n_features)
    answer = mixture.infer(rows[:, :n_inputs], columns[:n_inputs], columns[n_inputs:])
    return answer.probability_below(rows[:, n_inputs:])


def _folds(count: int, n_columns: int) -> Iterator[AnyArray]:
    """Which rows to leave out, time after time."""
    n_folds = 5 if count <= max(_FEW_ROWS, _FEW_A_COLUMN * n_columns) else 2
    numbers = np.random.default_rng(0).permutation(count) % n_folds
    for number in range(min(n_folds, count if count > 1 else 0)):
        yield numbers == number


def _fitted_alike(mixture: Mixture, rows: Array, weights: Array) -> Mixture:
    """A mixture of the same settings, fitted to some of the rows."""
    settings = mixture.settings.as_dict()
    return (
        Mixture(mixture.n_features, scale=mixture.scale, **settings)
        .learn(rows, weights)
        .consolidate()
    )
