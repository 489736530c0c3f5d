"""How often outcomes stay below what is predicted of them, and quantiles that allow for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np

from figmn._typing import Array
from figmn.engines.regression import Regression, predict_by_pattern
from figmn.stream.start import HeldOut

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

    @classmethod
    def checked(cls, levels: Array, weights: Array, n_outputs: int) -> Self:
        """One from a file; raises ValueError on what calibrating cannot have made."""
        known = levels[~np.isnan(levels)]
        if (
            levels.shape != (len(weights), n_outputs)
            or weights.ndim != 1
            or not np.all((known >= 0.0) & (known <= 1.0))
            or not np.all((weights >= 0.0) & np.isfinite(weights))
        ):
            raise ValueError("the calibration is none that learning could have made")
        return cls(levels, weights)

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


def calibrated(held_out: Sequence[HeldOut], n_outputs: int) -> Calibration | None:
    """Calibration on rows that were held out, or None if there are none.

    Parameters
    ----------
    held_out : sequence of HeldOut
        Rows of inputs, then ``n_outputs`` outputs, and components to judge by them.
    n_outputs : int
    """
    if not held_out:
        return None
    levels = np.concatenate([_levels(each, n_outputs) for each in held_out])
    weights = np.concatenate([each.weights for each in held_out])
    return Calibration(levels, weights / weights.mean())


def _levels(held_out: HeldOut, n_outputs: int) -> Array:
    rows, variables = held_out.rows, np.arange(held_out.components.n_features)
    known, wanted = variables[:-n_outputs], variables[-n_outputs:]
    answer = predict_by_pattern(
        rows[:, :-n_outputs], lambda part: Regression(held_out.components, known[part], wanted)
    )
    return answer.probability_below(rows[:, -n_outputs:])
