"""A mixture's regression, frozen and compiled: microseconds a question.

An agent asks about one state at a time, many times between two changes of its mixtures.
:meth:`figmn.Mixture.infer` answers many rows at once, with all it knows of each; this
answers one row with what an agent needs, a hundred times faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from figmn._typing import Array
from figmn.mixture import Mixture
from figmn.rl import kernels


@dataclass(frozen=True)
class Prediction:
    """Means of wanted variables for N rows.

    Attributes
    ----------
    mean : array of shape (N, M)
    log_density : array of shape (N,)
        Of the known rows, under the mixture's marginal.
    """

    mean: Array
    log_density: Array


@dataclass(frozen=True)
class FrozenRegression:
    """Regression of a mixture's last variables on its first ones.

    Attributes
    ----------
    centers : array of shape (K, I)
    whiteners : array of shape (K, I, I)
    log_heights : array of shape (K,)
    offsets, coefficients : arrays of shape (K, M), (K, M, I)

    Examples
    --------
    >>> import numpy as np
    >>> from figmn import Mixture
    >>> from figmn.rl.regression import FrozenRegression
    >>> x = np.linspace(-1.0, 1.0, 200)
    >>> mixture = Mixture(2, delta=0.3).learn(np.column_stack([x, 3.0 * x]))
    >>> frozen = FrozenRegression.of(mixture, n_known=1)
    >>> slow = mixture.infer([[0.5]], known=[0])
    >>> bool(np.allclose(frozen.predict(np.array([[0.5]])).mean, slow.mean()))
    True
    """

    centers: Array
    whiteners: Array
    log_heights: Array
    offsets: Array
    coefficients: Array

    @classmethod
    def of(cls, mixture: Mixture, n_known: int) -> Self:
        """Of all later variables of a mixture on its first ``n_known``."""
        means, covariances = mixture.means, mixture.covariances
        known, cross = covariances[:, :n_known, :n_known], covariances[:, :n_known, n_known:]
        roots = np.linalg.cholesky(known)
        slopes = np.linalg.solve(known, cross)
        log_volumes = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        return cls(
            centers=np.ascontiguousarray(means[:, :n_known]),
            whiteners=np.ascontiguousarray(np.linalg.inv(roots)),
            log_heights=np.log(mixture.weights) - log_volumes - 0.5 * n_known * np.log(2 * np.pi),
            offsets=np.ascontiguousarray(means[:, n_known:]),
            coefficients=np.ascontiguousarray(slopes.transpose(0, 2, 1)),
        )

    def predict(self, rows: Array) -> Prediction:
        """Means of the wanted variables for known rows of shape (N, I)."""
        mean = np.empty((len(rows), self.offsets.shape[1]))
        answer = Prediction(mean, np.empty(len(rows)))
        kernels.regress(
            np.ascontiguousarray(rows),
            self.centers,
            self.whiteners,
            self.log_heights,
            self.offsets,
            self.coefficients,
            answer.mean,
            answer.log_density,
        )
        return answer
