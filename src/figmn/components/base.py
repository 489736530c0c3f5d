"""What a mixture needs of its components, however they are held."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Self

import numpy as np

from figmn._typing import AnyArray, Array, Index, IntArray
from figmn.components import factors
from figmn.components.density import log_sum, normalised
from figmn.components.scale import suggested_scale
from figmn.kernels.compiler import LARGEST, SMALLEST_VARIANCE
from figmn.kernels.learning import Settings


class Split(NamedTuple):
    """Components over known variables, and others given these."""

    known: Components
    """Marginals of the I known variables."""
    coefficients: Array
    """Shape (K, M, I): of the wanted on the known."""
    whiteners: Array
    """Shape (K, M, M): with ``variances``, factors of the wanted given the known."""
    variances: Array
    """Shape (K, M)."""


class Components(ABC):
    """K Gaussian components over D variables that learn from rows.

    Attributes
    ----------
    moments : array of shape (3, D)
        Weight, mean and variance of each column so far.
    """

    moments: Array

    @property
    @abstractmethod
    def n_components(self) -> int:
        """K."""

    @property
    @abstractmethod
    def n_learnt(self) -> int:
        """Number of rows learnt."""

    @property
    def n_features(self) -> int:
        """D."""
        return int(self.moments.shape[1])

    @property
    @abstractmethod
    def means(self) -> Array:
        """Shape (K, D); this and the following may be views."""

    @property
    @abstractmethod
    def marginals(self) -> Array:
        """Diagonals of the covariances, of shape (K, D)."""

    @property
    @abstractmethod
    def log_dets(self) -> Array:
        """Log-determinants of the covariances, of shape (K,)."""

    @property
    @abstractmethod
    def masses(self) -> Array:
        """Accumulated posteriors, of shape (K,)."""

    @property
    @abstractmethod
    def ages(self) -> IntArray:
        """Updates lived through, of shape (K,)."""

    @property
    def weights(self) -> Array:
        """Prior probabilities, of shape (K,)."""
        weights: Array = self.masses / self.masses.sum()
        return weights

    @abstractmethod
    def learn(self, rows: Array, weights: Array, settings: Settings) -> None:
        """Learn rows of shape (N, D) in order."""

    @abstractmethod
    def append(self, mean: Array, spread: Array, mass: float) -> None:
        """Add a component without correlations, of these means and standard deviations."""

    @abstractmethod
    def remove(self, k: int) -> None:
        """Take a component out; the others keep their order."""

    def create(self, row: Array, weight: float, settings: Settings) -> None:
        """Start a component at a novel row, of shape (D,).

        Its missing entries are what the others expect, or else column means. A row of
        weight ``w > 1`` counts as that row seen ``w`` times, which leaves the initial
        covariance a share of ``1 / w``.
        """
        unknown = np.isnan(row)
        if unknown.any():
            if self.n_components == 0:
                row = np.where(unknown, self.moments[1], row)
            else:
                rows = row[np.newaxis]
                row = self.filled(rows, normalised(self.evaluated(rows)[1]))[0]
        scale = suggested_scale(self.moments) if settings.adaptive else settings.scale
        deviation = np.minimum(settings.delta * scale, LARGEST)
        variance = np.maximum(deviation**2 / max(weight, 1.0), SMALLEST_VARIANCE)
        self.append(row, np.sqrt(variance), weight)

    def prune(self, settings: Settings) -> None:
        """Remove old components of little mass and faded ones, but never the heaviest."""
        spurious = (self.ages > settings.prune_age) & (self.masses < settings.prune_mass)
        spurious |= self.masses < settings.faded * self.masses.sum()
        spurious[np.argmax(self.masses)] = False
        for k in np.flatnonzero(spurious)[::-1]:
            self.remove(int(k))

    @abstractmethod
    def factor(self, k: int) -> tuple[Array, Array]:
        """Whitener and residual variances of one component, of shape (D, D) and (D,)."""

    def factors(self) -> tuple[Array, Array]:
        """Those of all components, of shape (K, D, D) and (K, D)."""
        shape = (self.n_components, self.n_features)
        whiteners, variances = np.empty((*shape, self.n_features)), np.empty(shape)
        for k in range(self.n_components):
            whiteners[k], variances[k] = self.factor(k)
        return whiteners, variances

    @abstractmethod
    def evaluated(self, rows: Array) -> tuple[Array, Array]:
        r"""Squared distances and :math:`\log p(j) p(x_{known} \mid j)`, of shape (N, K)."""

    def log_joint(self, rows: Array) -> Array:
        """The latter alone; where it cannot matter to a row, an upper bound will do."""
        return self.evaluated(rows)[1]

    def log_density(self, rows: Array) -> Array:
        """Log density of each row's known entries, of shape (N,)."""
        return log_sum(self.log_joint(rows))[:, 0]

    @abstractmethod
    def filled(self, rows: Array, posteriors: Array) -> Array:
        """Rows with NaN replaced by their conditional means."""

    @abstractmethod
    def marginal(self, variables: Index) -> Components:
        """The components over some of the variables, in that order."""

    @abstractmethod
    def split(self, known: Index, wanted: Index) -> Split:
        """How wanted variables follow from known ones."""

    @abstractmethod
    def merge(self, i: int, j: int) -> None:
        """Moment-match component ``j`` into ``i``, and remove it."""

    @abstractmethod
    def widened(self, initial: Array) -> Self:
        """With further variables that were zero so far, of these variances at first."""

    @abstractmethod
    def arrays(self) -> dict[str, AnyArray]:
        """Named arrays that hold everything."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: dict[str, AnyArray]) -> Self:
        """Inverse of :meth:`arrays`; raises ValueError on what learning cannot have made."""

    def sampled(
        self, n_samples: int, random: np.random.Generator | np.random.RandomState
    ) -> tuple[Array, Index]:
        """Rows drawn from the mixture, and the component of each, by which they are grouped."""
        counts = random.multinomial(n_samples, self.weights)
        rows = random.standard_normal((n_samples, self.n_features))
        ends = np.cumsum(counts)
        for k in np.flatnonzero(counts):
            here = slice(ends[k] - counts[k], ends[k])
            whitener, variances = (part[np.newaxis] for part in self.factor(int(k)))
            root = factors.covariance_roots(whitener, variances)[0]
            rows[here] = self.means[k] + rows[here] @ root.T
        return rows, np.repeat(np.arange(self.n_components), counts)

    def total_scale(self) -> Array:
        """Standard deviations of the whole mixture's variables, of shape (D,)."""
        apart = self.means - self.weights @ self.means
        return factors.within_scale(np.sqrt(self.weights @ (self.marginals + apart**2)))
