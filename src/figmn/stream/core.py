"""The mixture without validation, for all that builds on it.

Arrays that are handed to it must be what :mod:`figmn.validation` makes of input: float64,
C-contiguous, of the right shape, within range, with NaN for what is unknown.
"""

from __future__ import annotations

import math
from typing import Any, Final, Self

import numpy as np

from figmn._typing import AnyArray, Array, Index
from figmn.engines.conditional import Conditional
from figmn.engines.interface import Components
from figmn.engines.regression import Regression, patterns, predict_by_pattern
from figmn.settings import Settings
from figmn.stream import packing
from figmn.stream.phases import FitWarmUp, Phase, Streaming, first_phase, reconfigured
from figmn.stream.start import HeldOut

_MOST_REGRESSIONS: Final = 16  # sets of known and wanted variables to keep factors for


class MixtureCore:
    """A mixture's phase, and what has been worked out of it for questions.

    Parameters
    ----------
    phase : Phase
        See :mod:`figmn.stream.phases`.

    Examples
    --------
    >>> import numpy as np
    >>> from figmn import Mixture
    >>> core = Mixture(n_features=2, delta=1.0, scale=1.0).core
    >>> core.learn(np.array([[0.0, 1.0], [0.5, 1.5]]), np.ones(2))
    >>> core.components().n_components
    1
    """

    def __init__(self, phase: Phase) -> None:
        self.phase = phase
        self._regressions: dict[tuple[bytes, bytes], Regression] = {}
        self._on_first: dict[int, Regression] = {}

    @classmethod
    def new(
        cls,
        n_features: int,
        settings: Settings,
        scale: Array | None = None,
        center: Array | None = None,
    ) -> Self:
        """A mixture that has learnt nothing; see :class:`figmn.Mixture` for the arguments."""
        return cls(first_phase(n_features, settings, scale, center))

    @classmethod
    def of(cls, components: Components, settings: Settings, scale: Array | None) -> Self:
        """A mixture of ready components, which it owns from now on."""
        return cls(Streaming(settings, components, scale))

    # -- Learning ------------------------------------------------------------

    def learn(self, rows: Array, weights: Array) -> None:
        """Learn rows of shape (N, D) with weights of shape (N,), in order."""
        self._forget()
        self.phase = self.phase.learn(rows, weights)

    def consolidate(self) -> None:
        """Fit what is known of the stream together, since no more rows are coming soon."""
        self._put(self.phase.consolidate())

    def reconfigure(self, changes: dict[str, Any]) -> None:
        """Change settings for all that is learnt from now on."""
        self._put(reconfigured(self.phase, self.settings.changed(changes)))

    def give_scale(self, scale: Array) -> None:
        """Give the columns' standard deviations, if the mixture is still to be fitted."""
        if isinstance(self.phase, FitWarmUp):
            self.phase.give_scale(scale)

    def merge(self, first: int, second: int) -> None:
        """Moment-match the second component into the first, and remove it."""
        self._put(self.phase.merged(first, second))

    def add_variables(self, n_new: int, scale: Array) -> None:
        """Append variables of a given scale that have been zero in every row so far."""
        self._put(self.phase.widened(n_new, scale))

    def _put(self, phase: Phase) -> None:
        self._forget()
        self.phase = phase

    def _forget(self) -> None:
        """Forget what was worked out for questions, since the answers change."""
        self._regressions.clear()
        self._on_first.clear()

    # -- Questions -----------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """The settings."""
        return self.phase.settings

    @property
    def scale(self) -> Array | None:
        """The columns' standard deviations, of shape (D,), if they were given."""
        return self.phase.scale

    @property
    def n_features(self) -> int:
        """Number of variables D."""
        return self.phase.n_features

    def components(self) -> Components:
        """The components that questions see: rows that are held back count as learnt."""
        return self.phase.model().components

    def retained_rows(self) -> tuple[Array, Array] | None:
        """Rows that stand for all that were learnt, and their weights, if such are kept."""
        buffer = self.phase.retained()
        return None if buffer is None else (buffer.rows, buffer.weights)

    def held_out(self) -> tuple[HeldOut, ...]:
        """Rows and components that have not seen them, of a mixture that is to predict.

        The same object, as long as nothing has changed in it.
        """
        return self.phase.model().held_out

    def regression(self, known: Index, wanted: Index) -> Regression:
        """How wanted variables follow from known ones: worked out once a state."""
        key = (known.tobytes(), wanted.tobytes())
        regression = self._regressions.get(key)
        if regression is None:
            if len(self._regressions) >= _MOST_REGRESSIONS:
                self._regressions.clear()
            regression = self._regressions[key] = Regression(self.components(), known, wanted)
        return regression

    def infer(self, rows: Array, known: Index, wanted: Index) -> Conditional:
        """Distributions of wanted variables for rows of known ones, of shape (N, I)."""
        return predict_by_pattern(rows, lambda part: self.regression(known[part], wanted))

    def mean_given_first(self, rows: Array) -> tuple[Array, Array]:
        """Means of the last variables given the first, and log densities of these.

        Parameters
        ----------
        rows : array of shape (N, I)
            Values of the first I variables; NaN where a row does not know one after all.

        Returns
        -------
        mean : array of shape (N, D - I)
        log_density : array of shape (N,)
        """
        n_known, values = rows.shape[1], rows.ravel()
        if not math.isnan(values @ values):  # nothing is missing: the same, but faster
            regression = self._on_first.get(n_known)
            if regression is None:
                regression = Regression.on_first(self.components(), n_known)
                self._on_first[n_known] = regression
            return regression.mean(rows)
        present, variables = ~np.isnan(rows), np.arange(self.phase.n_features)
        known, wanted = variables[:n_known], variables[n_known:]
        mean, log_density = np.empty((len(rows), len(wanted))), np.empty(len(rows))
        for part, here in patterns(present):
            answer = self.regression(known[part], wanted).mean(rows[here][:, part])
            mean[here], log_density[here] = answer
        return mean, log_density

    # -- Files and copies ----------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Settings as plain values, and everything learnt as named arrays."""
        return self.settings.as_dict(), packing.pack(self.phase)

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, AnyArray]) -> Self:
        """Inverse of :meth:`to_state`; raises ValueError on anything inconsistent."""
        return cls(packing.unpack(Settings(**settings), arrays))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_regressions": {}, "_on_first": {}}
