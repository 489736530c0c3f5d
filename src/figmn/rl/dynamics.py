"""How an environment answers actions, learnt by a mixture."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from scipy.spatial import KDTree

from figmn._typing import Array, Index
from figmn.mixture import Mixture
from figmn.rl.memory import Transitions
from figmn.rl.regression import FrozenRegression

_ACTION: Final = 0.3  # weight of the action's columns against the state's, in distances
_NEIGHBOURS: Final = 8
_HIT: Final = 1e-3  # distance below which a step is taken to be the same


class MixtureDynamics:
    r"""Mixture over [state, action, change of state, reward], all in units of their spread.

    The action is one-hot without its last column, which follows from the others. Changes
    and rewards are learnt with a little noise: a component then stays wide enough to
    take up rows of which it is right but for that noise, and rows that a linear
    regression fits worse start another one.

    The mixture has the trend. What it left unexplained at the nearest remembered steps is
    added, each weighted by its inverse squared distance :math:`w` (in standard
    deviations), over a total of :math:`1 + \sum w`: near a step that was really taken
    the model says what really followed, and far from all it is the mixture's own.

    Parameters
    ----------
    n_actions : int
    delta, beta : float
        As for :class:`figmn.Mixture`.
    noise : float
        In units of the columns' spread.
    """

    _arrays = ("change_center", "change_spread", "steps", "residuals")
    """What a file keeps beside the mixture."""

    change_center: Array
    change_spread: Array
    steps: Array
    residuals: Array

    def __init__(self, n_actions: int, *, delta: float, beta: float, noise: float) -> None:
        self.n_actions = n_actions
        self.delta = delta
        self.beta = beta
        self.noise = noise

    def fit(self, steps: Transitions, random: np.random.Generator) -> None:
        """Learn all transitions, of states in any units."""
        changes = np.column_stack([steps.after - steps.before, steps.rewards])
        self.change_center, self.change_spread = changes.mean(axis=0), spread_of(changes)
        inputs = self._inputs(steps.before, steps.actions)
        outputs = (changes - self.change_center) / self.change_spread
        outputs += self.noise * random.standard_normal(outputs.shape)
        rows = np.column_stack([inputs, outputs])
        # Neighbours in time are neighbours in space: shuffled, the first component
        # of a region sees all of it.
        self.mixture = Mixture(rows.shape[1], delta=self.delta, beta=self.beta, scale=1.0)
        self.mixture.learn(rows[random.permutation(len(rows))])
        self._freeze()
        self._remember(inputs)
        self.residuals = changes - self._trend(inputs)

    def _freeze(self) -> None:
        n_outputs = len(self.change_center)
        self._regression = FrozenRegression.of(self.mixture, self.mixture.n_features - n_outputs)

    def _remember(self, inputs: Array) -> None:
        self.steps = inputs
        self._tree = KDTree(inputs)

    def _inputs(self, states: Array, actions: Index) -> Array:
        one_hot = actions[:, np.newaxis] == np.arange(self.n_actions - 1)
        return np.column_stack([states, _ACTION * one_hot])

    def _trend(self, inputs: Array) -> Array:
        """What the mixture predicts of changes and rewards, of shape (N, D + 1)."""
        trend: Array = self._regression.predict(inputs).mean
        return trend * self.change_spread + self.change_center

    def _unexplained(self, inputs: Array) -> Array:
        """What the mixture left unexplained near by, of shape (N, D + 1)."""
        weights, nearest = self._neighbour_weights(inputs)
        weights /= 1.0 + weights.sum(axis=1, keepdims=True)
        unexplained: Array = np.einsum("nk,nkm->nm", weights, self.residuals[nearest])
        return unexplained

    def _neighbour_weights(self, inputs: Array) -> tuple[Array, Index]:
        """Inverse squared distances of the nearest steps, and which these are: (N, k) each."""
        count = min(_NEIGHBOURS, len(self.steps))
        distances, nearest = self._tree.query(inputs, k=np.arange(1, count + 1))
        return 1.0 / (distances + _HIT) ** 2, nearest

    def predict(self, states: Array, actions: Index) -> tuple[Array, Array]:
        """States and rewards after actions.

        Parameters
        ----------
        states : array of shape (N, D)
        actions : int array of shape (N,)

        Returns
        -------
        after : array of shape (N, D)
        rewards : array of shape (N,)
        """
        inputs = self._inputs(states, actions)
        changes = self._trend(inputs) + self._unexplained(inputs)
        return states + changes[:, :-1], changes[:, -1]

    def pack(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What was learnt, as plain values and arrays."""
        settings, arrays = self.mixture._pack()
        arrays = {f"mixture.{name}": array for name, array in arrays.items()}
        return settings, arrays | {name: getattr(self, name) for name in self._arrays}

    def unpack(self, settings: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Inverse of :meth:`pack`."""
        own = {
            n.removeprefix("mixture."): a for n, a in arrays.items() if n.startswith("mixture.")
        }
        self.mixture = Mixture._unpack(settings, own)
        for name in self._arrays:
            setattr(self, name, arrays[name])
        self._freeze()
        self._remember(self.steps)


def spread_of(columns: Array) -> Array:
    """Standard deviations of the columns; one where there is none."""
    spread: Array = columns.std(axis=0)
    rounding = 1e-12 * np.abs(columns).max(axis=0)
    return np.where(spread > rounding, spread, 1.0)
