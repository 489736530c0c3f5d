"""A Gaussian mixture that grows as it learns from a stream, in one pass."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Final, TypeAlias

import numpy as np

from figmn import storage
from figmn._typing import Array, ArrayLike, Index, IntArray, RandomState
from figmn.components import factors
from figmn.components import state as states
from figmn.components.base import Components
from figmn.components.density import normalised
from figmn.components.plain import PlainComponents
from figmn.kernels.compiler import LARGEST
from figmn.mixture import packing, validation
from figmn.mixture.choices import Choices
from figmn.mixture.conditional import Conditional, Regression, predict_by_pattern
from figmn.mixture.learner import Learner
from figmn.mixture.tail import log_tail

_MOST_ANSWERS: Final = 16  # sets of known and wanted variables to keep factors for
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
    delta : float or "auto", default="auto"
        Width of a new component, in standard deviations of the columns. If only
        ``beta`` is given, 1.
    beta : float or "auto", default="auto"
        A row is novel if it is less probable than this, as a tail probability,
        under every component. With 0 there is one component for ever. If only
        ``delta`` is given, 0.1. If neither is, the mixture starts from EM on its
        first ``warmup`` rows (see Notes).
    scale : array-like of shape (D,), float or None, default=None
        The columns' standard deviations. With None they are estimated as the
        stream runs.
    center : array-like of shape (D,) or None, default=None
        Column means, to stand in for what is missing in a first row.
    max_components : int or None, default=None
        Hard bound on K. At the bound a novel row is not lost: it updates the
        existing components by their posteriors, like any other row.
    prune_age, prune_mass : int and float, default=0
        A component that has lived through more than ``prune_age`` updates with
        a mass below ``prune_mass`` is removed, unless it is the heaviest. With
        a mass of 0 nothing is removed.
    update : {"exact", "paper"}, default="exact"
        The covariance update: moment-exact, or as printed in the paper (and
        exact where that would lose positive definiteness). A row with missing
        entries always takes the exact one.
    warmup : int or None, default=None
        Rows that are held back at first, though every query already counts them:
        2048 to start from by EM, and else 100, if the scale is not given, to
        estimate it.
    half_life : float or None, default=None
        For streams that drift: after so many rows a row counts half, after twice
        as many a quarter. A component goes when less than half a row is left of
        it. With None nothing is forgotten.
    shrinkage : float or None, default=None
        How many rows the pooled covariance counts for in each component, where the
        mixture starts from EM. With None rows that are left out decide between 0, 1,
        10, 100, 1000 and one covariance for all components.
    parsimony : float or None, default=None
        How many standard errors, in the likelihood of rows left out, fewer components
        may cost where the mixture starts from EM. With None 1, or 0.5 where more rows
        are to come; 0 is for predictions, where components cost nothing but time.

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

    def __init__(
        self,
        n_features: int,
        *,
        delta: float | str = "auto",
        beta: float | str = "auto",
        scale: ArrayLike | None = None,
        center: ArrayLike | None = None,
        max_components: int | None = None,
        prune_age: int = 0,
        prune_mass: float = 0.0,
        update: str = "exact",
        warmup: int | None = None,
        half_life: float | None = None,
        shrinkage: float | None = None,
        parsimony: float | None = None,
    ) -> None:
        n_features = validation.check_count(n_features, "n_features", 1)
        choices = Choices(
            delta,
            beta,
            max_components,
            prune_age,
            prune_mass,
            update,
            warmup,
            half_life,
            shrinkage,
            parsimony,
        )
        own_scale = None if scale is None else validation.as_scale(scale, n_features)
        own_center = None if center is None else validation.as_center(center, n_features)
        self._learner = Learner.new(n_features, choices, own_scale, own_center)
        self._answers: dict[Any, Regression] = {}

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
        state = states.from_factors(centers, whiteners, variances, masses)
        return cls._of(PlainComponents(state), settings)

    @classmethod
    def _of(cls, components: Components, settings: dict[str, Any]) -> Mixture:
        """Mixture of ready components, which it owns from now on."""
        if settings.get("scale") is None:
            settings = {**settings, "scale": components.total_scale()}
        mixture = cls(components.n_features, **settings)
        mixture._learner = Learner(mixture.choices, components, mixture.scale)
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
        self._learn(rows, validation.as_weights(sample_weight, len(rows)))
        return self

    def learn_one(self, x: ArrayLike, weight: float = 1.0) -> Mixture:
        """Learn one row of shape (D,), as :meth:`learn` does but with less overhead."""
        row = validation.as_row(x, self.n_features)
        self._learn(row, _ONE if weight == 1.0 else validation.as_weights(weight, 1))
        return self

    def _learn(self, rows: Array, weights: Array) -> None:
        self._answers.clear()
        self._learner.learn(rows, weights)

    def consolidate(self) -> Mixture:
        """Fit what is known of the stream together, since no more rows are coming soon.

        Only a mixture that starts from EM changes: in its warm-up it fits all rows that
        are held back, and later the sample of the stream, if this has changed since the
        components were fitted. ``fit`` of the estimators does this after the last row.
        """
        self._answers.clear()
        self._learner.consolidate()
        return self

    def reconfigure(self, **changes: Any) -> Mixture:
        """Change settings for all that is learnt from now on, as ``beta=0.01``."""
        self._answers.clear()
        self._learner.reconfigure(replace(self.choices, **changes))
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
        self._answers.clear()
        self._learner.merge(first, second)
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
        self._answers.clear()
        self._learner.add_variables(n_new, validation.as_scale(scale, n_new))
        return self

    # -- What was learnt -----------------------------------------------------

    @property
    def choices(self) -> Choices:
        """The settings, which cannot be changed but by :meth:`reconfigure`."""
        return self._learner.choices

    @property
    def scale(self) -> Array | None:
        """The columns' standard deviations, of shape (D,), if they were given."""
        return self._learner.scale

    @property
    def n_features(self) -> int:
        """Number of variables D."""
        return self._learner.components.n_features

    @property
    def n_components(self) -> int:
        """Number of components K so far."""
        return self._learner.visible.n_components

    @property
    def n_learnt(self) -> int:
        """Number of rows learnt."""
        return self._learner.visible.n_learnt

    @property
    def means(self) -> Array:
        """Component means, of shape (K, D)."""
        return self._learner.visible.means.copy()

    @property
    def covariances(self) -> Array:
        """Covariance matrices, of shape (K, D, D)."""
        return factors.covariances(*self._learner.visible.factors())

    @property
    def precisions(self) -> Array:
        """Precision matrices, of shape (K, D, D)."""
        return factors.precisions(*self._learner.visible.factors())

    @property
    def log_determinants(self) -> Array:
        """Log-determinants of the covariances, of shape (K,)."""
        return self._learner.visible.log_dets.copy()

    @property
    def masses(self) -> Array:
        """Accumulated posteriors, of shape (K,)."""
        return self._learner.visible.masses.copy()

    @property
    def weights(self) -> Array:
        """Prior probabilities of the components, of shape (K,)."""
        return self._learner.visible.weights

    @property
    def ages(self) -> IntArray:
        """Updates that each component has lived through, of shape (K,)."""
        return self._learner.visible.ages.copy()

    def known_rows(self) -> tuple[Array, Array] | None:
        """Rows that stand for all that were learnt, and their weights, if such are kept.

        Only a mixture that starts from EM keeps any: all rows in its warm-up, and then,
        without a ``half_life``, a sample of the stream of the same size.
        """
        kept = self._learner.known_rows()
        return None if kept is None else (kept.rows.copy(), kept.weights.copy())

    # -- Questions -----------------------------------------------------------

    def squared_distances(self, X: ArrayLike) -> Array:
        """Squared Mahalanobis distances of rows (N, D) to the components, of shape (N, K)."""
        return self._ready.evaluated(validation.as_rows(X, self.n_features))[0]

    def log_density(self, X: ArrayLike) -> Array:
        """Log density of the known entries of each of N rows, of shape (N,)."""
        return self._ready.log_density(validation.as_rows(X, self.n_features))

    def log_tail(self, X: ArrayLike) -> Array:
        """Log probability that the mixture yields a row of lower density, of shape (N,).

        An upper bound, which is attained where components do not overlap.
        """
        rows = validation.as_rows(X, self.n_features)
        known = np.sum(~np.isnan(rows), axis=1)
        return log_tail(*self._ready.evaluated(rows), self.weights, known)

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
        return self._ready.filled(rows, self.posteriors(rows))

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
        return predict_by_pattern(
            rows, lambda known: self._regression(known_index[known], wanted_index)
        )

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
        regression = self._regression(known_index[present], wanted_index)
        answer = regression.predict(row[:, present])
        kept = answer.weights[0] > 0.0
        state = states.from_factors(
            answer.means[0][kept],
            regression.split.whiteners[kept],
            regression.split.variances[kept],
            answer.weights[0][kept] * self.masses.sum(),
        )
        return self._derived(PlainComponents(state), wanted_index)

    def marginalize(self, keep: Variables) -> Mixture:
        """The mixture of some of the variables, ``keep``, in the order given."""
        index = validation.as_index(keep, self.n_features, "keep")
        if len(index) == 0:
            raise ValueError("keep must name at least one column.")
        return self._derived(self._ready.marginal(index), index)

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
        return self._ready.sampled(n_samples, random)

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

    def _pack(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Settings as plain values, and state as arrays, for a file."""
        return asdict(self.choices), packing.pack(self._learner)

    @classmethod
    def _unpack(cls, settings: dict[str, Any], arrays: dict[str, Any]) -> Mixture:
        """Inverse of :meth:`_pack`; raises ValueError on anything inconsistent."""
        learner = packing.unpack(Choices(**settings), arrays)
        mixture = cls(learner.components.n_features, scale=learner.scale, **settings)
        mixture._learner = learner
        return mixture

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_answers": {}}

    def __repr__(self) -> str:
        return f"<Mixture of {self.n_components} components, from {self.n_learnt} rows>"

    # -- Inside --------------------------------------------------------------

    @property
    def _ready(self) -> Components:
        """The components that queries see, or an error if there are none."""
        components = self._learner.visible
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
        return self._ready.log_joint(validation.as_rows(X, self.n_features))

    def _regression(self, known: Index, wanted: Index) -> Regression:
        """How wanted follow from known: computed once for each state and pair of sets."""
        components = self._ready
        key = (tuple(known), tuple(wanted))
        regression = self._answers.get(key)
        if regression is None:
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            regression = self._answers[key] = Regression.of(components, known, wanted)
        return regression

    def _derived(self, components: Components, variables: Index) -> Mixture:
        """Mixture of some of the variables, with the settings of this one."""
        settings = asdict(self.choices)
        settings["scale"] = None if self.scale is None else self.scale[variables]
        return self._of(components, settings)
