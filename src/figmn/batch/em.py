"""Expectation-maximisation for Gaussian mixtures with shrunken covariances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from figmn._typing import AnyArray, Array, Index
from figmn.batch.slices import LARGEST, Slices, cost, finished

FLOOR: Final = 1e-6
"""Added to every variance, as scikit-learn's ``reg_covar`` is."""

_MOST_PRODUCTS: Final = 2**21  # of columns, to hold at once (16 MiB)
_MAKING, _EXPONENTIAL = 30, 60  # what each of them costs, in multiplications
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

    Log densities are linear in the products of a row's entries, the entries and one, and so
    are covariances. Where these features fit into memory, a round is two matrix products,
    whatever the number of components. (In standard units, with a variance floor, nothing is
    lost by that, unless there are outliers.)

    Parameters
    ----------
    rows : array of shape (N, D)
    weights : array of shape (N,)
        In units of a row: their sum is the number of rows that they are worth.
    """

    def __init__(self, rows: Array, weights: Array) -> None:
        self.rows = rows
        self.weights = weights
        n_rows, n_features = rows.shape
        few = n_rows * n_features * (n_features + 1) <= 2 * _MOST_PRODUCTS
        self._by_features = bool(few and np.abs(rows).max(initial=0.0) <= _FAR_OUT)
        self._pairs = np.triu_indices(n_features) if self._by_features else None
        self._features: Array | None = None

    def _made_features(self) -> Slices[Array]:
        """Products, entries and one of each row, made when they are first needed."""
        if self._features is None:
            assert self._pairs is not None
            (first, second), rows = self._pairs, self.rows
            features = np.empty((len(rows), len(first) + rows.shape[1] + 1))
            for part in _blocks(len(rows), _MAKING * features.shape[1]):
                here = features[part]
                np.multiply(rows[part, first], rows[part, second], out=here[:, : len(first)])
                here[:, len(first) : -1], here[:, -1] = rows[part], 1.0
                yield cost(_MAKING * here.size)
            self._features = features
        return self._features

    def __len__(self) -> int:
        return len(self.rows)

    def subset(self, index: Index) -> Batch:
        """Some of the rows."""
        return Batch(self.rows[index], self.weights[index])

    def log_joint(self, parameters: Parameters) -> Array:
        r"""Values of :math:`\log p(j) p(x \mid j)`, of shape (N, K)."""
        return finished(self.log_joint_slices(parameters))

    def log_joint_slices(self, parameters: Parameters) -> Slices[Array]:
        """The same in slices. Each component's values lie side by side in memory."""
        joint = np.empty((len(parameters.weights), len(self.rows)))
        if not self._by_features:
            yield from self._fill_by_roots(joint, parameters)
        else:
            features = yield from self._made_features()
            coefficients = self._coefficients(parameters)
            size = len(joint) * (features.shape[1] + _EXPONENTIAL)
            for part in _blocks(len(self.rows), size):
                np.matmul(coefficients, features[part].T, out=joint[:, part])
                yield cost((part.stop - part.start) * size)
        return joint.T

    def _fill_by_roots(self, joint: Array, parameters: Parameters) -> Slices[None]:
        """Fill in joint densities of shape (K, N), a component after the other."""
        n_features = self.rows.shape[1]
        for k, (mean, covariance, weight) in enumerate(zip(*parameters, strict=True)):
            root: Array = np.linalg.cholesky(covariance)
            yield cost(n_features**3 / 3)
            log_det = 2.0 * np.log(np.diagonal(root)).sum()
            constant = np.log(weight) - 0.5 * (log_det + n_features * _LOG_2_PI)
            for part in _blocks(len(self.rows), n_features**2):
                white = (self.rows[part] - mean).T
                _solve_lower(root, white)
                joint[k, part] = constant - 0.5 * np.einsum("dn,dn->n", white, white)
                yield cost((part.stop - part.start) * n_features**2)

    def _coefficients(self, parameters: Parameters) -> Array:
        """Log joint densities as sums over features: a row a component."""
        means, covariances, weights = parameters
        n_components, n_features = means.shape
        roots: Array = np.linalg.cholesky(covariances).astype(np.float64, copy=False)
        log_dets = 2.0 * np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        whiteners = np.linalg.inv(roots)
        precisions = whiteners.transpose(0, 2, 1) @ whiteners
        assert self._pairs is not None
        first, second = self._pairs
        coefficients = np.empty((n_components, len(first) + n_features + 1))
        linear = (precisions @ means[:, :, np.newaxis])[:, :, 0]
        coefficients[:, : len(first)] = precisions[:, first, second]
        coefficients[:, : len(first)] *= np.where(first == second, -0.5, -1.0)
        coefficients[:, len(first) : -1] = linear
        constants = log_dets + n_features * _LOG_2_PI + (linear * means).sum(axis=1)
        coefficients[:, -1] = np.log(weights) - 0.5 * constants
        return coefficients

    def log_density(self, parameters: Parameters) -> Array:
        """Log density of each row, of shape (N,)."""
        return normalised(self.log_joint(parameters))[1]

    def posteriors(self, parameters: Parameters) -> Array:
        """Probabilities of the components given each row, of shape (N, K)."""
        return normalised(self.log_joint(parameters))[0]

    def scatter(self, shares: Array) -> Scatter:
        """Moments of the components, for their shares of shape (N, K)."""
        return finished(self.scatter_slices(shares))

    def scatter_slices(self, shares: Array) -> Slices[Scatter]:
        """The same in slices."""
        shares = (shares * self.weights[:, np.newaxis]).T
        if not self._by_features:
            return (yield from self._scatter_by_rows(shares))
        features = yield from self._made_features()
        sums = np.zeros((shares.shape[0], features.shape[1]))
        for part in _blocks(len(self.rows), sums.size):
            sums += shares[:, part] @ features[part]
            yield cost((part.stop - part.start) * sums.size)
        assert self._pairs is not None
        first, second = self._pairs
        counts, means = sums[:, -1], sums[:, len(first) : -1] / sums[:, -1:]
        squares = np.empty((*means.shape, means.shape[1]))
        squares[:, first, second] = squares[:, second, first] = sums[:, : len(first)]
        squares -= counts[:, np.newaxis, np.newaxis] * (
            means[:, :, np.newaxis] * means[:, np.newaxis]
        )
        return Scatter(counts, means, squares)

    def _scatter_by_rows(self, shares: Array) -> Slices[Scatter]:
        """Moments by sums of products about the means, for shares of shape (K, N)."""
        counts, n_features = shares.sum(axis=1), self.rows.shape[1]
        means = shares @ self.rows / counts[:, np.newaxis]
        squares = np.zeros((*means.shape, n_features))
        for k, mean in enumerate(means):
            for part in _blocks(len(self.rows), n_features**2):
                apart = self.rows[part] - mean
                squares[k] += (shares[k, part, np.newaxis] * apart).T @ apart
                yield cost((part.stop - part.start) * n_features**2)
        return Scatter(counts, means, squares)


def _blocks(count: int, size: int) -> Iterator[slice]:
    """Stretches of rows that are a slice of work each, at so many products a row."""
    step = max(int(LARGEST / size), 1)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def normalised(joint: Array) -> tuple[Array, Array]:
    """Posteriors (N, K) and log densities (N,), from joint log densities of shape (N, K)."""
    largest = joint.max(axis=1, keepdims=True)
    shares: Array = np.exp(joint - largest)
    totals = shares.sum(axis=1, keepdims=True)
    shares /= totals
    return shares, (largest + np.log(totals))[:, 0]


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
) -> Slices[Parameters]:
    """Rounds of EM from given shares, until the log density gains less than tolerated.

    The tolerance is in nats a row and column. Components that come to explain less
    than one row are left out, and from the beginning those without a share in any.
    """
    tolerance *= batch.rows.shape[1]
    before = -np.inf
    total = batch.weights.sum()
    counts = batch.weights @ shares
    shares = shares[:, counts > _NEGLIGIBLE * counts.sum()]
    parameters = maximised((yield from batch.scatter_slices(shares)), prior)
    for _ in range(rounds):
        joint = yield from batch.log_joint_slices(parameters)
        shares, density = normalised(joint)
        kept = batch.weights @ shares >= _LEAST_COUNT
        if not kept.all():
            shares = _without_others(joint, kept)
        parameters = maximised((yield from batch.scatter_slices(shares)), prior)
        reached = float(batch.weights @ density) / total
        if kept.all() and reached - before < tolerance:
            break
        before = reached
    return parameters


def _without_others(joint: Array, kept: AnyArray) -> Array:
    """Posteriors among the components that are kept, or of the largest if none is."""
    if not kept.any():
        kept = np.zeros(joint.shape[1], dtype=bool)
        kept[np.argmax(normalised(joint.T)[1])] = True
    return normalised(joint[:, kept])[0]
