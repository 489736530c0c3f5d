"""What a mixture needs of its components, however they are held, and of an engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol, Self

import numpy as np

from figmn._typing import Array, Index, IntArray
from figmn.engines import factors
from figmn.engines.responsibilities import log_sum
from figmn.kernels.rule import Rule


class Engine(Protocol):
    """One way to learn a chunk of rows.

    An engine is made for one chunk: from components, which it changes in place, rows of shape
    (N, D), weights of shape (N,) and the rule. A chunk is what reaches the driver of the
    stream. That may be less than what a caller has passed, even no rows at all.

    The driver calls :meth:`advance` until all rows are learnt. After ``NOVEL`` it starts
    exactly one component from row ``stop``, and goes on with ``advance(stop + 1)``. After
    ``SPURIOUS`` it may remove components, and goes on with ``advance(stop)``. ``NOTHING``
    before the end of the chunk means: call again, with ``advance(stop)``.
    """

    def advance(self, start: int) -> tuple[int, int]:
        """Learn rows from ``start`` on, as far as that goes without help.

        Returns
        -------
        stop : int
            The first row not learnt; N if there is none.
        event : int
            ``NOTHING``; or ``NOVEL``: row ``stop`` starts a component, and has changed
            nothing yet; or ``SPURIOUS``: after the row before it, components may have to be
            removed.
        """
        ...


class Standing(Protocol):
    """The arrays that all components have, with room for C >= K of them."""

    @property
    def means(self) -> Array:
        """Shape (C, D)."""
        ...

    @property
    def marginals(self) -> Array:
        """Diagonals of the covariances, of shape (C, D)."""
        ...

    @property
    def log_dets(self) -> Array:
        """Log-determinants of the covariances, of shape (C,)."""
        ...

    @property
    def masses(self) -> Array:
        """Accumulated responsibilities, of shape (C,)."""
        ...

    @property
    def ages(self) -> IntArray:
        """Updates lived through, of shape (C,)."""
        ...

    @property
    def size(self) -> IntArray:
        """The number of components K, and of rows learnt."""
        ...

    @property
    def moments(self) -> Array:
        """Weight, mean and variance of each column so far, of shape (3, D)."""
        ...


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
    """K Gaussian components over D variables.

    Per-component values are properties that return views, but for ``weights``. A kind of
    components adds how its covariances are held, in nine methods.
    """

    state: Standing

    # -- What is held --------------------------------------------------------

    @property
    def n_components(self) -> int:
        """K."""
        return int(self.state.size[0])

    @property
    def n_learnt(self) -> int:
        """Number of rows learnt."""
        return int(self.state.size[1])

    @property
    def n_features(self) -> int:
        """D."""
        return int(self.state.moments.shape[1])

    @property
    def moments(self) -> Array:
        """Weight, mean and variance of each column so far, of shape (3, D)."""
        return self.state.moments

    @property
    def means(self) -> Array:
        """Shape (K, D)."""
        return self.state.means[: self.n_components]

    @property
    def marginals(self) -> Array:
        """Diagonals of the covariances, of shape (K, D)."""
        return self.state.marginals[: self.n_components]

    @property
    def log_dets(self) -> Array:
        """Log-determinants of the covariances, of shape (K,)."""
        return self.state.log_dets[: self.n_components]

    @property
    def masses(self) -> Array:
        """Accumulated responsibilities, of shape (K,)."""
        return self.state.masses[: self.n_components]

    @property
    def ages(self) -> IntArray:
        """Updates lived through, of shape (K,)."""
        return self.state.ages[: self.n_components]

    @property
    def weights(self) -> Array:
        """Prior probabilities, of shape (K,)."""
        weights: Array = self.masses / self.masses.sum()
        return weights

    # -- What each kind of components does -----------------------------------

    @abstractmethod
    def start_component(
        self, mean: Array, deviations: Array, row: Array, weight: float, rule: Rule
    ) -> None:
        """Add a component without correlations, of these means and standard deviations.

        It counts from one moment to the next, together with all else that the row does
        which starts it: other masses fade, column moments note it, it has been learnt.

        Parameters
        ----------
        mean, deviations : arrays of shape (D,)
        row : array of shape (D,)
            May have missing entries.
        weight : float
        rule : Rule
        """

    @abstractmethod
    def remove(self, k: int) -> None:
        """Take a component out; the others keep their order."""

    @abstractmethod
    def merge(self, i: int, j: int) -> None:
        """Moment-match component ``j`` into ``i``, and remove it."""

    @abstractmethod
    def widened(self, initial: Array) -> Self:
        """With further variables that were zero so far, of these variances at first."""

    @abstractmethod
    def factor(self, k: int) -> tuple[Array, Array]:
        """Whitener and residual variances of one component, of shape (D, D) and (D,)."""

    @abstractmethod
    def evaluated(self, rows: Array) -> tuple[Array, Array]:
        r"""Squared distances and :math:`\log p(j) p(x_{known} \mid j)`, of shape (N, K)."""

    @abstractmethod
    def filled(self, rows: Array, responsibilities: Array) -> Array:
        """Rows with NaN replaced by their conditional means."""

    @abstractmethod
    def marginal(self, variables: Index) -> Components:
        """The components over some of the variables, in that order."""

    @abstractmethod
    def split(self, known: Index, wanted: Index) -> Split:
        """How wanted variables follow from known ones."""

    # -- What follows from these; some kinds know a faster way ----------------

    def factors(self) -> tuple[Array, Array]:
        """Whiteners and residual variances of all components, (K, D, D) and (K, D)."""
        shape = (self.n_components, self.n_features)
        whiteners, variances = np.empty((*shape, self.n_features)), np.empty(shape)
        for k in range(self.n_components):
            whiteners[k], variances[k] = self.factor(k)
        return whiteners, variances

    def log_joint(self, rows: Array) -> Array:
        """Log joint densities; where one cannot matter to a row, an upper bound will do."""
        return self.evaluated(rows)[1]

    def log_density(self, rows: Array) -> Array:
        """Log density of each row's known entries, of shape (N,)."""
        return log_sum(self.log_joint(rows))[:, 0]

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
