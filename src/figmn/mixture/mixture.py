"""A Gaussian mixture that grows as it learns from a stream, in one pass."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from figmn import storage, validation
from figmn._typing import Array, ArrayLike, Index, IntArray, RandomState
from figmn.engines import factors
from figmn.engines.conditional import Conditional
from figmn.engines.interface import Components
from figmn.engines.responsibilities import normalised
from figmn.engines.rowwise import dense_state
from figmn.engines.rowwise.dense_components import DenseComponents
from figmn.kernels.compiler import LARGEST
from figmn.mixture.tail import log_tail
from figmn.settings import MixtureArguments, Settings, described, takes
from figmn.stream import MixtureCore

_ONE: Final = np.ones(1)

Variables: TypeAlias = Sequence[int] | Index


class Mixture:
    r"""Full-covariance Gaussian mixture, learnt row by row in O(K D^2) each.

    A row that lies within the chi-square quantile ``isf(beta, D)`` of some
    component updates all of them by their posteriors; any other row starts a
    component of its own. NaN marks an unknown entry, in learning and in every
    query: what is unknown is integrated out.

    With ``delta`` and ``beta`` left to themselves nothing needs tuning: the first
    rows are fitted together by EM, as many components as rows left out of it
    confirm, and the stream refines these from then on.

    Parameters
    ----------
    n_features : int
        Number of variables D.
    {parameters}

    Notes
    -----
    With posterior ``p`` and weight ``a``, a component changes by

    .. math::

        s' = s + a p, \quad w = a p / s', \quad e = x - \mu, \quad
        \mu' = \mu + w e, \quad S' = (1 - w) S + w (1 - w) e e^\top

    and a new one starts at ``x`` with mass ``a`` and a diagonal covariance of
    ``(delta * scale)**2 / max(a, 1)``, as if the row had come ``a`` times. (To
    a mixture of several components a weight is not quite a repetition, since a
    repeated row changes the posteriors of its own next occurrence.)

    With neither ``delta`` nor ``beta`` given, the number of components climbs from
    one by splitting the heavier half of them, with EM after each step, and rows
    that were left out say where to stop and how far to shrink covariances towards
    the pooled one. After the warm-up rows update these components as above; one
    whose tail probability is below 1e-6 starts a component as wide as the others
    on average, up to twice as many as at first and sixteen, if there are rows for so
    many. The paper's update rule takes ``delta=1`` and ``beta=0.1`` instead.

    Examples
    --------
    >>> import numpy as np
    >>> from figmn import Mixture
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-3, 3, 2000)
    >>> stream = np.column_stack([x, np.sin(x) + 0.1 * rng.normal(size=2000)])
    >>> mixture = Mixture(n_features=2, delta=0.2, beta=0.05).learn(stream)
    >>> answer = mixture.infer([[1.0]], known=[0], wanted=[1])
    >>> bool(abs(answer.mean()[0, 0] - np.sin(1.0)) < 0.1)
    True
    """

    @takes(MixtureArguments)
    def __init__(self, n_features: int, arguments: MixtureArguments) -> None:
        n_features = validation.check_count(n_features, "n_features", 1)
        scale, center = arguments.scale, arguments.center
        self.core = MixtureCore.new(
            n_features,
            arguments.settings(),
            None if scale is None else validation.as_scale(scale, n_features),
            None if center is None else validation.as_center(center, n_features),
        )

    @classmethod
    def from_parameters(
        cls,
        means: ArrayLike,
        covariances: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        mass: float | None = None,
        **settings: Any,
    ) -> Mixture:
        """Make a mixture of given components, without learning.

        Parameters
        ----------
        means : array-like of shape (K, D)
        covariances : array-like of shape (K, D, D)
        weights : array-like of shape (K,) or None
            Relative; equal by default.
        mass : float or None
            How many rows the components stand for, in all; one each by default.
        **settings
            As for :class:`Mixture`. Unless given, ``scale`` is the standard
            deviation of the mixture itself.

        Examples
        --------
        >>> from figmn import Mixture
        >>> mixture = Mixture.from_parameters([[0.0], [4.0]], [[[1.0]], [[1.0]]])
        >>> mixture.weights
        array([0.5, 0.5])
        """
        centers, matrices, shares = validation.as_components(means, covariances, weights)
        try:
            whiteners, variances = factors.factor(matrices)
        except np.linalg.LinAlgError:
            raise ValueError(
                "covariances must be positive definite: one of them is not."
            ) from None
        total = float(len(centers)) if mass is None else mass
        total = validation.check_number(total, "mass", 0.0, LARGEST, open_low=True)
        masses = shares / shares.sum() * total
        state = dense_state.from_factors(centers, whiteners, variances, masses)
        return cls._of(DenseComponents(state), settings)

    @classmethod
    def _of(cls, components: Components, settings: dict[str, Any]) -> Mixture:
        """Mixture of ready components, which it owns from now on."""
        if settings.get("scale") is None:
            settings = {**settings, "scale": components.total_scale()}
        mixture = cls(components.n_features, **settings)
        mixture.core = MixtureCore.of(components, mixture.settings, mixture.scale)
        return mixture

    # -- Learning ------------------------------------------------------------

    def learn(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Mixture:
        """Learn rows in the order given.

        The same rows give the same model, in chunks of any sizes: to rounding, and
        bit for bit in chunks of fewer than 500 rows with fewer than 256 variables.
        In larger ones, rows are learnt together where that is sure to be the same.

        Parameters
        ----------
        X : array-like of shape (N, D)
            NaN marks a missing entry. A row with nothing known is passed over.
        sample_weight : array-like of shape (N,), float or None

        Returns
        -------
        Mixture
            Itself.
        """
        rows = validation.as_rows(X, self.n_features)
        self.core.learn(rows, validation.as_weights(sample_weight, len(rows)))
        return self

    def learn_one(self, x: ArrayLike, weight: float = 1.0) -> Mixture:
        """Learn one row of shape (D,), as :meth:`learn` does but with less overhead."""
        row = validation.as_row(x, self.n_features)
        self.core.learn(row, _ONE if weight == 1.0 else validation.as_weights(weight, 1))
        return self

    def consolidate(self) -> Mixture:
        """Fit what is known of the stream together, since no more rows are coming soon.

        Only a mixture that starts from EM changes: in its warm-up it fits all rows that
        are held back, and later the sample of the stream, if this has changed since the
        components were fitted. ``fit`` of the estimators does this after the last row.
        """
        self.core.consolidate()
        return self

    def reconfigure(self, **changes: Any) -> Mixture:
        """Change settings for all that is learnt from now on, as ``beta=0.01``."""
        self.core.reconfigure(changes)
        return self

    def merge(self, first: int, second: int) -> Mixture:
        r"""Merge two components into one with the moments of both.

        .. math:: S = (1-w) S_1 + w S_2 + w (1-w) \Delta \Delta^\top

        The result takes the place of the first, the second is removed; the
        mass is the sum and the age the larger. Changes the mixture in place.
        """
        count = self.n_components
        first, second = (validation.as_integer(k, "a component") for k in (first, second))
        if not (0 <= first < count and 0 <= second < count and first != second):
            raise ValueError(
                f"merge takes two different components from 0 to {count - 1}, "
                f"not {first} and {second}."
            )
        self.core.merge(first, second)
        return self

    def add_variables(self, n_new: int, scale: float = 1.0) -> Mixture:
        """Append variables that have been zero in every row so far.

        Components become what they would be, had the columns been there from
        the start with this scale. Changes the mixture in place.

        Parameters
        ----------
        n_new : int
        scale : float
            Standard deviation of the new columns, as in ``scale`` of the mixture.
        """
        n_new = validation.check_count(n_new, "n_new", 1)
        self.core.add_variables(n_new, validation.as_scale(scale, n_new))
        return self

    # -- What was learnt -----------------------------------------------------

    @property
    def settings(self) -> Settings:
        """The settings, which cannot be changed but by :meth:`reconfigure`."""
        return self.core.settings

    @property
    def scale(self) -> Array | None:
        """The columns' standard deviations, of shape (D,), if they were given."""
        return self.core.scale

    @property
    def n_features(self) -> int:
        """Number of variables D."""
        return self.core.n_features

    @property
    def n_components(self) -> int:
        """Number of components K so far."""
        return self.core.components().n_components

    @property
    def n_learnt(self) -> int:
        """Number of rows learnt."""
        return self.core.components().n_learnt

    @property
    def means(self) -> Array:
        """Component means, of shape (K, D)."""
        return self.core.components().means.copy()

    @property
    def covariances(self) -> Array:
        """Covariance matrices, of shape (K, D, D)."""
        return factors.covariances(*self.core.components().factors())

    @property
    def precisions(self) -> Array:
        """Precision matrices, of shape (K, D, D)."""
        return factors.precisions(*self.core.components().factors())

    @property
    def log_determinants(self) -> Array:
        """Log-determinants of the covariances, of shape (K,)."""
        return self.core.components().log_dets.copy()

    @property
    def masses(self) -> Array:
        """Accumulated posteriors, of shape (K,)."""
        return self.core.components().masses.copy()

    @property
    def weights(self) -> Array:
        """Prior probabilities of the components, of shape (K,)."""
        return self.core.components().weights

    @property
    def ages(self) -> IntArray:
        """Updates that each component has lived through, of shape (K,)."""
        return self.core.components().ages.copy()

    def known_rows(self) -> tuple[Array, Array] | None:
        """Rows that stand for all that were learnt, and their weights, if such are kept.

        Only a mixture that starts from EM keeps any: all rows in its warm-up, and then,
        without a ``half_life``, a sample of the stream of the same size.
        """
        retained = self.core.retained_rows()
        return None if retained is None else (retained[0].copy(), retained[1].copy())

    # -- Questions -----------------------------------------------------------

    def squared_distances(self, X: ArrayLike) -> Array:
        """Squared Mahalanobis distances of rows (N, D) to the components, of shape (N, K)."""
        return self._ready().evaluated(validation.as_rows(X, self.n_features))[0]

    def log_density(self, X: ArrayLike) -> Array:
        """Log density of the known entries of each of N rows, of shape (N,)."""
        return self._ready().log_density(validation.as_rows(X, self.n_features))

    def log_tail(self, X: ArrayLike) -> Array:
        """Log probability that the mixture yields a row of lower density, of shape (N,).

        An upper bound, which is attained where components do not overlap.
        """
        rows = validation.as_rows(X, self.n_features)
        known = np.sum(~np.isnan(rows), axis=1)
        return log_tail(*self._ready().evaluated(rows), self.weights, known)

    def posteriors(self, X: ArrayLike) -> Array:
        """Probabilities of the components given each of N rows, of shape (N, K)."""
        return normalised(self._log_joint(X))

    def assign(self, X: ArrayLike) -> Index:
        """Most probable component of each of N rows, of shape (N,)."""
        assigned: Index = np.argmax(self._log_joint(X), axis=1)
        return assigned

    def fill(self, X: ArrayLike) -> Array:
        """Rows (N, D) with NaN replaced by the conditional mean given their known entries."""
        rows = validation.as_rows(X, self.n_features)
        return self._ready().filled(rows, self.posteriors(rows))

    def infer(
        self, X: ArrayLike, known: Variables, wanted: Variables | None = None
    ) -> Conditional:
        r"""Predict wanted variables from known ones, for many rows.

        With the variables ordered known first, the whitener's lower blocks
        give the regression: :math:`m_j = \mu_w - T_{ww}^{-1} T_{wk} (x - \mu_k)`
        and :math:`C_j = T_{ww}^{-1} \operatorname{diag}(v_w) T_{ww}^{-\top}`.

        Parameters
        ----------
        X : array-like of shape (N, len(known))
            Values of the known variables, in that order; NaN where a row does
            not know one after all.
        known : sequence of int
        wanted : sequence of int or None
            By default all the others, in ascending order. What is neither
            known nor wanted is integrated out.

        Returns
        -------
        Conditional

        Examples
        --------
        >>> from figmn import Mixture
        >>> mixture = Mixture.from_parameters([[0.0, 1.0]], [[[1.0, 0.5], [0.5, 1.0]]])
        >>> answer = mixture.infer([[2.0]], known=[0], wanted=[1])
        >>> answer.mean().round(9).tolist(), answer.covariance().round(9).tolist()
        ([[2.0]], [[[0.75]]])
        """
        known_index, wanted_index = validation.as_split(known, wanted, self.n_features)
        rows = validation.as_rows(X, len(known_index))
        self._ready()
        return self.core.infer(rows, known_index, wanted_index)

    def condition(
        self, x: ArrayLike, known: Variables, wanted: Variables | None = None
    ) -> Mixture:
        """The mixture of the wanted variables, given one row of known values.

        Parameters
        ----------
        x : array-like of shape (len(known),)
        known, wanted
            As for :meth:`infer`.

        Returns
        -------
        Mixture
            Over the wanted variables, in their order. Components without any
            weight are left out.

        Examples
        --------
        >>> from figmn import Mixture
        >>> mixture = Mixture.from_parameters([[0.0, 1.0]], [[[1.0, 0.5], [0.5, 1.0]]])
        >>> mixture.condition([2.0], known=[0]).means.round(9).tolist()
        [[2.0]]
        """
        known_index, wanted_index = validation.as_split(known, wanted, self.n_features)
        row = validation.as_row(x, len(known_index))
        present = ~np.isnan(row[0])
        self._ready()
        regression = self.core.regression(known_index[present], wanted_index)
        answer, split = regression.predict(row[:, present]), regression.split
        counted = answer.weights[0] > 0.0
        state = dense_state.from_factors(
            answer.means[0][counted],
            split.whiteners[counted],
            split.variances[counted],
            answer.weights[0][counted] * self.masses.sum(),
        )
        return self._derived(DenseComponents(state), wanted_index)

    def marginalize(self, keep: Variables) -> Mixture:
        """The mixture of some of the variables, ``keep``, in the order given."""
        index = validation.as_index(keep, self.n_features, "keep")
        if len(index) == 0:
            raise ValueError("keep must name at least one column.")
        return self._derived(self._ready().marginal(index), index)

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> tuple[Array, Index]:
        """Draw rows.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState, Generator or None
            The same integer gives the same rows.

        Returns
        -------
        X : array of shape (n_samples, D)
        components : int array of shape (n_samples,)
            Where each row came from; rows are grouped by it.
        """
        n_samples = validation.check_count(n_samples, "n_samples", 1)
        random = random_state
        if not isinstance(random, np.random.Generator | np.random.RandomState):
            random = np.random.default_rng(random)
        return self._ready().sampled(n_samples, random)

    # -- Keeping -------------------------------------------------------------

    def copy(self) -> Mixture:
        """An independent copy."""
        return copy.deepcopy(self)

    def __copy__(self) -> Mixture:
        # What is learnt changes in place: a shallow copy would learn into the original.
        return self.copy()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, atomically; :func:`figmn.load` reads it."""
        storage.save(self, path)

    def to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Settings as plain values, and everything learnt as arrays, for a file."""
        return self.core.to_state()

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, Any]) -> Mixture:
        """Inverse of :meth:`to_state`; raises ValueError on anything inconsistent."""
        core = MixtureCore.from_state(settings, arrays)
        mixture = cls(core.n_features, scale=core.scale, **settings)
        mixture.core = core
        return mixture

    def __repr__(self) -> str:
        return f"<Mixture of {self.n_components} components, from {self.n_learnt} rows>"

    # -- Inside --------------------------------------------------------------

    def _ready(self) -> Components:
        """The components that questions see, or an error if there are none."""
        components = self.core.components()
        if components.n_components == 0:
            # Imported here, since scikit-learn takes longer to import than all
            # that a mixture itself needs.
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                "This mixture has learnt nothing yet: call learn with at least one row "
                "that has a known entry and a positive weight."
            )
        return components

    def _log_joint(self, X: ArrayLike) -> Array:
        return self._ready().log_joint(validation.as_rows(X, self.n_features))

    def _derived(self, components: Components, variables: Index) -> Mixture:
        """Mixture of some of the variables, with the settings of this one."""
        settings = self.settings.as_dict()
        settings["scale"] = None if self.scale is None else self.scale[variables]
        return self._of(components, settings)


Mixture.__doc__ = (Mixture.__doc__ or "").replace("{parameters}", described(MixtureArguments))
