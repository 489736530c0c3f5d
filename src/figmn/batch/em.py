"""Expectation-maximisation for Gaussian mixtures with shrunken covariances."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from figmn._typing import AnyArray, Array, Index
from figmn.engines.responsibilities import log_sum

FLOOR: Final = 1e-6
"""Added to every variance, as scikit-learn's ``reg_covar`` is."""

_MOST_PRODUCTS: Final = 2**23  # of columns, to hold at once (64 MiB)
_FAR_OUT: Final = 1e3  # an entry, for differences of products to lose less than the floor
_SMALL_TRIANGLE: Final = 128  # variables up to which it is inverted
_LEAST_COUNT: Final = 1.0  # rows that a component must explain, to be kept
_NEGLIGIBLE: Final = 1e-9  # share of all rows that has no moments to speak of
_ROUNDING: Final = 64 * float(np.finfo(np.float64).eps)
_LOG_2_PI: Final = float(np.log(2.0 * np.pi))


class Parameters(NamedTuple):
    """A Gaussian mixture."""

    means: Array
    """Shape (K, D)."""
    covariances: Array
    """Shape (K, D, D)."""
    weights: Array
    """Shape (K,), of sum one."""


class Prior(NamedTuple):
    """What covariances are shrunk to, and how far.

    Attributes
    ----------
    rows : float
        How many rows the pooled covariance counts for in each component; if infinite,
        all components share it.
    diagonal : float
        Share of the diagonal in the pooled covariance.
    """

    rows: float
    diagonal: float = 0.1


class Scatter(NamedTuple):
    """Moments of rows, by components."""

    counts: Array
    """Shape (K,)."""
    means: Array
    """Shape (K, D)."""
    squares: Array
    """Sums of squares and products about the means, of shape (K, D, D)."""


class Batch:
    """Complete rows in standard units, ready for many rounds of EM.

    Distances and covariances are linear in the products of a row's entries. Where
    these fit into memory, a round is two matrix products, whatever the number of
    components. (In standard units, with a variance floor, nothing is lost by that,
    unless there are outliers.)

    Parameters
    ----------
    rows : array of shape (N, D)
    weights : array of shape (N,)
        In units of a row: their sum is the number of rows that they are worth.
    """

    def __init__(self, rows: Array, weights: Array) -> None:
        self.rows = rows
        self.weights = weights
        self._products: Array | None = None
        few = len(rows) * rows.shape[1] * (rows.shape[1] + 1) <= 2 * _MOST_PRODUCTS
        if few and np.abs(rows).max(initial=0.0) <= _FAR_OUT:
            first, second = self._pairs = np.triu_indices(rows.shape[1])
            self._products = rows[:, first] * rows[:, second]

    def __len__(self) -> int:
        return len(self.rows)

    def subset(self, index: Index) -> Batch:
        """Some of the rows."""
        return Batch(self.rows[index], self.weights[index])

    def log_joint(self, parameters: Parameters) -> Array:
        r"""Values of :math:`\log p(j) p(x \mid j)`, of shape (N, K)."""
        roots: Array = np.linalg.cholesky(parameters.covariances).astype(np.float64, copy=False)
        n_features = self.rows.shape[1]
        if self._products is None:
            distances = self._distances(parameters.means, roots)
        else:
            distances = self._distances_by_products(parameters.means, roots, self._products)
        log_dets = 2.0 * np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        constants = np.log(parameters.weights) - 0.5 * (log_dets + n_features * _LOG_2_PI)
        joint: Array = constants - 0.5 * distances
        return joint

    def _distances(self, means: Array, roots: Array) -> Array:
        """Squared distances for covariances of these Cholesky factors, of shape (N, K)."""
        distances = np.empty((len(self.rows), len(means)))
        for k, (mean, root) in enumerate(zip(means, roots, strict=True)):
            white = (self.rows - mean).T
            _solve_lower(root, white)
            distances[:, k] = np.einsum("dn,dn->n", white, white)
        return distances

    def _distances_by_products(self, means: Array, roots: Array, products: Array) -> Array:
        """The same, of all components in one matrix product."""
        whiteners = np.linalg.inv(roots)
        precisions = whiteners.transpose(0, 2, 1) @ whiteners
        linear = np.einsum("kij,kj->ki", precisions, means)
        first, second = self._pairs
        quadratic = precisions[:, first, second] * np.where(first == second, 1.0, 2.0)
        distances: Array = products @ quadratic.T - 2.0 * (self.rows @ linear.T)
        distances += np.einsum("ki,ki->k", linear, means)
        return distances

    def log_density(self, parameters: Parameters) -> Array:
        """Log density of each row, of shape (N,)."""
        return log_sum(self.log_joint(parameters))[:, 0]

    def posteriors(self, parameters: Parameters) -> Array:
        """Probabilities of the components given each row, of shape (N, K)."""
        joint = self.log_joint(parameters)
        posteriors: Array = np.exp(joint - log_sum(joint))
        return posteriors

    def scatter(self, shares: Array) -> Scatter:
        """Moments of the components, for their shares of shape (N, K)."""
        shares = shares * self.weights[:, np.newaxis]
        counts = shares.sum(axis=0)
        means = shares.T @ self.rows / counts[:, np.newaxis]
        if self._products is None:
            squares = self._squares(shares, means)
        else:
            squares = self._squares_by_products(shares, means, self._products)
        return Scatter(counts, means, squares)

    def scatter_of_all(self) -> Scatter:
        """Moments of all rows as one component."""
        return self.scatter(np.ones((len(self), 1)))

    def _squares(self, shares: Array, means: Array) -> Array:
        """Weighted sums of squares about the means, of shape (K, D, D)."""
        squares = np.empty((*means.shape, means.shape[1]))
        for k, mean in enumerate(means):
            apart = self.rows - mean
            squares[k] = (shares[:, k, np.newaxis] * apart).T @ apart
        return squares

    def _squares_by_products(self, shares: Array, means: Array, products: Array) -> Array:
        """The same, of all components in one matrix product."""
        sums = shares.T @ products
        squares = np.empty((*means.shape, means.shape[1]))
        first, second = self._pairs
        squares[:, first, second] = sums
        squares[:, second, first] = sums
        squares -= np.einsum("k,ki,kj->kij", shares.sum(axis=0), means, means)
        return squares


def _solve_lower(root: Array, values: Array) -> None:
    """Replace values of shape (D, N) by ``inv(root) values``, for a lower triangular root.

    All by NumPy: SciPy's BLAS has threads of its own, which would wait for the same cores.
    """
    size = len(root)
    if size <= _SMALL_TRIANGLE:
        values[:] = np.linalg.inv(root) @ values
        return
    upper, lower = slice(0, size // 2), slice(size // 2, size)
    _solve_lower(root[upper, upper], values[upper])
    values[lower] -= root[lower, upper] @ values[upper]
    _solve_lower(root[lower, lower], values[lower])


def maximised(scatter: Scatter, prior: Prior) -> Parameters:
    r"""The most probable parameters, for the moments of components' rows.

    .. math:: S_j = \frac{\sum_t r_{tj} e_t e_t^\top + \nu T}{n_j + \nu} + \epsilon I

    with ``T`` the pooled covariance within components, a part of which is its
    own diagonal: components of few rows take their shape from the others.

    Parameters
    ----------
    scatter : Scatter
    prior : Prior
        The rows of which are nu.
    """
    counts, means, squares = scatter
    diagonal = np.arange(squares.shape[1])
    pooled = squares.sum(axis=0) / counts.sum()
    variances = pooled[diagonal, diagonal]
    pooled *= 1.0 - prior.diagonal
    pooled[diagonal, diagonal] = np.maximum(variances, 0.0) + FLOOR
    own = counts / (counts + prior.rows)
    covariances = squares * (own / counts)[:, np.newaxis, np.newaxis]
    covariances += (1.0 - own)[:, np.newaxis, np.newaxis] * pooled
    # Rounding can leave less than nothing where all rows are the same, and in some
    # directions where they are far apart in others.
    variances = np.maximum(covariances[:, diagonal, diagonal], 0.0)
    rounding = _ROUNDING * len(diagonal) * variances.max(axis=1, keepdims=True)
    covariances[:, diagonal, diagonal] = variances + FLOOR + rounding
    return Parameters(means, covariances, counts / counts.sum())


def converged(
    batch: Batch, shares: Array, prior: Prior, *, tolerance: float = 2.5e-4, rounds: int = 100
) -> Parameters:
    """Rounds of EM from given shares, until the log density gains less than tolerated.

    The tolerance is in nats a row and column. Components that come to explain less
    than one row are left out, and from the beginning those without a share in any.
    """
    tolerance *= batch.rows.shape[1]
    before = -np.inf
    counts = batch.weights @ shares
    shares = shares[:, counts > _NEGLIGIBLE * counts.sum()]
    parameters = maximised(batch.scatter(shares), prior)
    for _ in range(rounds):
        joint = batch.log_joint(parameters)
        density = log_sum(joint)
        shares = np.exp(joint - density)
        kept = batch.weights @ shares >= _LEAST_COUNT
        if not kept.all():
            shares = _without_others(joint, kept)
        parameters = maximised(batch.scatter(shares), prior)
        reached = float(np.average(density[:, 0], weights=batch.weights))
        if kept.all() and reached - before < tolerance:
            break
        before = reached
    return parameters


def _without_others(joint: Array, kept: AnyArray) -> Array:
    """Posteriors among the components that are kept, or of the largest if none is."""
    if not kept.any():
        kept = np.zeros(joint.shape[1], dtype=bool)
        kept[np.argmax(log_sum(joint.T))] = True
    joint = joint[:, kept]
    shares: Array = np.exp(joint - log_sum(joint))
    return shares
