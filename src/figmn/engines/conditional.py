"""What known variables say about wanted ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from figmn._typing import Array
from figmn.kernels.quantiles import solve_quantiles


class Conditional:
    """Distributions of wanted variables, one Gaussian mixture for each of N rows.

    Parameters
    ----------
    weights, means : arrays
    covariances : array, or a function that gives it
        It is called when they are first needed.

    Attributes
    ----------
    weights : array of shape (N, K)
        Posteriors of the components given the known values; rows sum to one.
    means : array of shape (N, K, M)
        Conditional means of each component.
    covariances : array of shape (K, M, M) or (N, K, M, M)
        Conditional covariances of each component. They depend on the row only
        where rows differ in what is known.

    Examples
    --------
    >>> from figmn import Mixture
    >>> mixture = Mixture.from_parameters([[0.0, 1.0]], [[[1.0, 0.6], [0.6, 1.0]]])
    >>> answer = mixture.infer([[1.0], [2.0]], known=[0], wanted=[1])
    >>> answer.mean().round(9).tolist(), answer.std().round(9).tolist()
    ([[1.6], [2.2]], [[0.8], [0.8]])
    >>> answer.quantile(0.5).round(9).tolist()
    [[1.6], [2.2]]
    """

    def __init__(
        self, weights: Array, means: Array, covariances: Array | Callable[[], Array]
    ) -> None:
        self.weights = weights
        self.means = means
        self._covariances = covariances

    @cached_property
    def covariances(self) -> Array:
        """Shape (K, M, M) or (N, K, M, M)."""
        given = self._covariances
        return given() if callable(given) else given

    def mean(self) -> Array:
        r"""Means of the mixtures, :math:`\sum_j p_j m_j`, of shape (N, M)."""
        mean: Array = np.einsum("nk,nkm->nm", self.weights, self.means)
        return mean

    def covariance(self) -> Array:
        r"""Covariances of the mixtures, of shape (N, M, M).

        .. math:: \sum_j p_j \left(C_j + (m_j - m)(m_j - m)^\top\right)

        The spread between the components' means counts, so that a margin is
        wide where the components disagree.
        """
        subscripts = "nk,nkij->nij" if self.covariances.ndim == 4 else "nk,kij->nij"
        within: Array = np.einsum(subscripts, self.weights, self.covariances)
        apart = self.means - self.mean()[:, np.newaxis, :]
        between: Array = np.einsum("nk,nki,nkj->nij", self.weights, apart, apart, optimize=True)
        return within + between

    def std(self) -> Array:
        """Standard deviations of the mixtures' variables, of shape (N, M)."""
        variances = np.diagonal(self.covariances, axis1=-2, axis2=-1)
        subscripts = "nk,nkm->nm" if variances.ndim == 3 else "nk,km->nm"
        within: Array = np.einsum(subscripts, self.weights, variances)
        apart = self.means - self.mean()[:, np.newaxis, :]
        between: Array = np.einsum("nk,nkm->nm", self.weights, apart**2)
        return np.sqrt(within + between)

    def probability_below(self, values: Array) -> Array:
        r"""Probabilities that variables stay below values of shape (N, M), of the same shape.

        :math:`\sum_j p_j \Phi((y - m_j) / s_j)`, the distribution functions of the mixtures.
        """
        standard = (np.asarray(values)[:, np.newaxis, :] - self.means) / self._deviations()
        below: Array = np.einsum("nk,nkm->nm", self.weights, ndtr(standard))
        return below

    def _deviations(self) -> Array:
        """Of the components' variables, of shape (1, K, M) or (N, K, M)."""
        deviations: Array = np.sqrt(np.diagonal(self.covariances, axis1=-2, axis2=-1))
        return deviations[np.newaxis] if deviations.ndim == 2 else deviations

    def quantile(self, probability: float | Array) -> Array:
        r"""Values that the variables stay below with some probability, of shape (N, M).

        The probability is one number, or one a variable, of shape (M,).

        The solution of :math:`\sum_j p_j \Phi((y - m_j) / s_j) = q`, by Newton's
        method within a bracket: unlike a multiple of the standard deviation it is right
        for mixtures of any shape.
        """
        asked = np.asarray(probability)
        if not np.all((asked > 0.0) & (asked < 1.0)):
            raise ValueError(f"a probability must lie between 0 and 1, not {probability}.")
        shape = (len(self.means), self.means.shape[2])
        every = np.array(np.broadcast_to(asked, shape), dtype=np.float64)
        quantile: Array = np.empty(shape)
        solve_quantiles(
            np.ascontiguousarray(self.weights),
            np.ascontiguousarray(self.means),
            np.ascontiguousarray(self._deviations()),
            every,
            ndtri(every),
            quantile,
        )
        return quantile
