"""How wanted variables follow from known ones, in one state of a mixture."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final, Self

import numpy as np

from figmn._typing import AnyArray, Array, Index
from figmn.engines import factors
from figmn.engines.conditional import Conditional
from figmn.engines.interface import Components, Split
from figmn.engines.responsibilities import log_sum, normalised
from figmn.engines.rowwise.dense_components import DenseComponents
from figmn.kernels.evaluation import regress
from figmn.kernels.leading import given_leading
from figmn.kernels.tiles import mean_given_leading

_FEW_ROWS: Final = 32  # fewer do not repay matrix products, and what prepares them
_NOTHING: Final = np.empty((0, 0, 0))


class Regression:
    """Regression of some of the components' variables on others.

    It is valid as long as the components do not change. Nothing is prepared before it is
    needed: a few rows are answered by a compiled loop over the factors, if the known
    variables come first in them, and many by matrix products.

    Parameters
    ----------
    components : Components
    known, wanted : int arrays of shape (I,) and (M,)
        Distinct variables.
    """

    def __init__(self, components: Components, known: Index, wanted: Index) -> None:
        self._components = components
        self._known, self._wanted = known, wanted

    @classmethod
    def on_first(cls, components: Components, n_known: int) -> Self:
        """Regression of the last variables on the first ones: nothing is put in order."""
        variables = np.arange(components.n_features)
        regression = cls(components, variables[:n_known], variables[n_known:])
        if isinstance(components, DenseComponents):
            regression._leading = components
        return regression

    @cached_property
    def split(self) -> Split:
        """Coefficients, and factors of the wanted given the known."""
        return self._components.split(self._known, self._wanted)

    @cached_property
    def covariances(self) -> Array:
        """Conditional covariances of the wanted variables, of shape (K, M, M)."""
        leading = self._leading
        if leading is None:
            return factors.covariances(self.split.whiteners, self.split.variances)
        first, end = len(self._known), len(self._known) + len(self._wanted)
        whiteners, variances = leading.factors()
        return factors.covariances(
            np.ascontiguousarray(whiteners[:, first:end, first:end]), variances[:, first:end]
        )

    @cached_property
    def _leading(self) -> DenseComponents | None:
        """The components with known variables first, then the wanted, if they are dense."""
        components = self._components
        if not isinstance(components, DenseComponents):
            return None
        order = np.concatenate([self._known, self._wanted])
        if (order == np.arange(len(order))).all():
            return components
        return components.marginal(order)

    def predict(self, rows: Array) -> Conditional:
        """Distributions of the wanted variables for complete known rows of shape (N, I)."""
        leading = self._leading if len(rows) < _FEW_ROWS else None
        if leading is not None:
            shape = (len(rows), leading.n_components, len(self._wanted))
            means = np.empty(shape)
            responsibilities, _, _ = self._given_leading(leading, rows, means)
            return Conditional(responsibilities, means, lambda: self.covariances.copy())
        known, coefficients = self.split.known, self.split.coefficients
        wanted_means = self._components.means[:, self._wanted]
        log_joint = known.log_joint(rows)
        means = np.empty((len(rows), *wanted_means.shape))
        with np.errstate(over="ignore", invalid="ignore"):
            regress(rows, known.means, coefficients, means)
            means += wanted_means
        means = factors.within_range(means)
        return Conditional(normalised(log_joint), means, lambda: self.covariances.copy())

    def mean(self, rows: Array) -> tuple[Array, Array]:
        """Means of the wanted variables (N, M), and log densities of the known rows (N,)."""
        leading = self._leading
        if leading is None:
            log_joint = self.split.known.log_joint(rows)
            return self.predict(rows).mean(), log_sum(log_joint)[:, 0]
        if len(rows) < _FEW_ROWS:
            _, mean, log_density = self._given_leading(leading, rows, _NOTHING)
            return mean, log_density
        state, shape = leading.state, (len(rows), len(self._wanted))
        mean, log_density = np.empty(shape), np.empty(len(rows))
        mean_given_leading(
            rows,
            leading.n_components,
            state.means,
            state.whiteners,
            state.variances,
            state.masses,
            mean,
            log_density,
        )
        return mean, log_density

    def _given_leading(
        self, leading: DenseComponents, rows: Array, component_means: Array
    ) -> tuple[Array, Array, Array]:
        state, count = leading.state, leading.n_components
        responsibilities, log_density = np.empty((len(rows), count)), np.empty(len(rows))
        mean = np.empty((len(rows), len(self._wanted)))
        given_leading(
            rows,
            count,
            state.means,
            state.whiteners,
            state.variances,
            state.marginals,
            state.masses,
            responsibilities,
            component_means,
            mean,
            log_density,
            np.empty(count),
            np.empty(len(self._known) + len(self._wanted)),
        )
        return responsibilities, mean, log_density


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
    parts = [
        (here, regression_on(known).predict(rows[here][:, known]))
        for known, here in patterns(present)
    ]
    order = np.argsort(np.concatenate([here for here, _ in parts]))
    return Conditional(
        np.concatenate([part.weights for _, part in parts])[order],
        np.concatenate([part.means for _, part in parts])[order],
        np.concatenate([np.repeat(p.covariances[np.newaxis], len(i), 0) for i, p in parts])[order],
    )


def patterns(present: AnyArray) -> list[tuple[AnyArray, Index]]:
    """The different rows of a boolean array of shape (N, I), and where each occurs."""
    distinct, which = np.unique(present, axis=0, return_inverse=True)
    which = which.ravel()
    return [(known, np.flatnonzero(which == n)) for n, known in enumerate(distinct)]
