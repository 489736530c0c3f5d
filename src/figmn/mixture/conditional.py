"""What known variables say about wanted ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from figmn._typing import AnyArray, Array, Index
from figmn.kernels.learning import State
from figmn.mixture import factors
from figmn.mixture.density import evaluated, normalised


@dataclass(frozen=True)
class Conditional:
    """Distributions of wanted variables, one Gaussian mixture for each of N rows.

    Attributes
    ----------
    weights : array of shape (N, K)
        Posteriors of the components given the known values; rows sum to one.
    means : array of shape (N, K, M)
        Conditional means of each component.
    covariances : array of shape (K, M, M) or (N, K, M, M)
        Conditional covariances of each component. They depend on the row only
        where rows differ in what is known.
    """

    weights: Array
    means: Array
    covariances: Array

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


@dataclass(frozen=True)
class Regression:
    """How wanted variables follow from known ones, in one state of a mixture.

    Attributes
    ----------
    weights : array of shape (K,)
    known_means, wanted_means : arrays of shape (K, I) and (K, M)
    known_whiteners, known_variances : arrays of shape (K, I, I) and (K, I)
        Factors of the known variables' marginals.
    wanted_whiteners, wanted_variances : arrays of shape (K, M, M) and (K, M)
        Factors of the wanted variables, given the known ones.
    coefficients : array of shape (K, M, I)
        Of the wanted on the known.
    covariances : array of shape (K, M, M)
        Of the wanted, given the known.
    """

    weights: Array
    known_means: Array
    wanted_means: Array
    known_whiteners: Array
    known_variances: Array
    wanted_whiteners: Array
    wanted_variances: Array
    coefficients: Array
    covariances: Array

    @classmethod
    def of(cls, state: State, known: Index, wanted: Index) -> Regression:
        """Order the variables known first; then everything is a block of the factor."""
        n_components, split = int(state.size[0]), len(known)
        whiteners, variances = factors.reorder(
            state.whiteners[:n_components],
            state.variances[:n_components],
            np.concatenate([known, wanted]),
        )
        wanted_whiteners = np.ascontiguousarray(whiteners[:, split:, split:])
        wanted_variances = np.ascontiguousarray(variances[:, split:])
        with np.errstate(over="ignore", invalid="ignore"):
            coefficients = -factors.inverses(wanted_whiteners) @ whiteners[:, split:, :split]
        means = state.means[:n_components]
        masses = state.masses[:n_components]
        return cls(
            weights=masses / masses.sum(),
            known_means=np.ascontiguousarray(means[:, known]),
            wanted_means=means[:, wanted],
            known_whiteners=np.ascontiguousarray(whiteners[:, :split, :split]),
            known_variances=np.ascontiguousarray(variances[:, :split]),
            wanted_whiteners=wanted_whiteners,
            wanted_variances=wanted_variances,
            coefficients=np.nan_to_num(coefficients),
            covariances=factors.covariances(wanted_whiteners, wanted_variances),
        )

    def predict(self, rows: Array) -> Conditional:
        """Distributions of the wanted variables for known rows of shape (N, I)."""
        log_joint = evaluated(
            rows,
            self.known_means,
            self.known_whiteners,
            self.known_variances,
            np.log(self.known_variances).sum(axis=1),
            self.weights,
        )[1]
        means = np.empty((len(rows), *self.wanted_means.shape))
        for k, (center, coefficients) in enumerate(
            zip(self.known_means, self.coefficients, strict=True)
        ):
            with np.errstate(over="ignore", invalid="ignore"):
                means[:, k] = self.wanted_means[k] + (rows - center) @ coefficients.T
        means = factors.within_range(means)
        return Conditional(normalised(log_joint), means, self.covariances.copy())


def predict_by_pattern(
    rows: Array, regression_on: Callable[[AnyArray], Regression]
) -> Conditional:
    """Predictions for rows of shape (N, I) that may not know all they are said to.

    Parameters
    ----------
    rows : array of shape (N, I)
        NaN marks the unknown.
    regression_on : callable
        Gives the regression on the variables that a boolean array of shape
        (I,) picks out.
    """
    present = ~np.isnan(rows)
    if present.all():
        return regression_on(np.ones(rows.shape[1], dtype=bool)).predict(rows)
    patterns, which = np.unique(present, axis=0, return_inverse=True)
    parts = []
    for number, known in enumerate(patterns):
        here = np.flatnonzero(which.ravel() == number)
        parts.append((here, regression_on(known).predict(rows[here][:, known])))
    order = np.argsort(np.concatenate([here for here, _ in parts]))
    return Conditional(
        np.concatenate([part.weights for _, part in parts])[order],
        np.concatenate([part.means for _, part in parts])[order],
        np.concatenate([np.repeat(p.covariances[np.newaxis], len(i), 0) for i, p in parts])[order],
    )
