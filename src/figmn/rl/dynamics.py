"""How an environment answers actions, learnt by a mixture."""

from __future__ import annotations

from typing import Any

import numpy as np

from figmn._typing import Array, Index
from figmn.mixture import Mixture
from figmn.rl.memory import Transitions
from figmn.rl.regression import FrozenRegression


class MixtureDynamics:
    """Mixture over [state, action, change of state, reward], all in units of their spread.

    The action is one-hot without its last column, which follows from the others. Changes
    and rewards are learnt with a little noise: a component then stays wide enough to
    take up rows of which it is right but for that noise, and rows that a linear
    regression fits worse start another one.

    Parameters
    ----------
    n_actions : int
    delta, beta : float
        As for :class:`figmn.Mixture`.
    noise : float
        In units of the columns' spread.
    """

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

    def _freeze(self) -> None:
        n_outputs = len(self.change_center)
        self._regression = FrozenRegression.of(self.mixture, self.mixture.n_features - n_outputs)

    def _inputs(self, states: Array, actions: Index) -> Array:
        one_hot = (actions[:, np.newaxis] == np.arange(self.n_actions - 1)).astype(np.float64)
        return np.column_stack([states, one_hot])

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
        standard = self._regression.predict(self._inputs(states, actions)).mean
        changes = standard * self.change_spread + self.change_center
        return states + changes[:, :-1], changes[:, -1]

    def pack(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What was learnt, as plain values and arrays."""
        settings, arrays = self.mixture._pack()
        arrays = {f"mixture.{name}": array for name, array in arrays.items()}
        arrays |= {"change_center": self.change_center, "change_spread": self.change_spread}
        return settings, arrays

    def unpack(self, settings: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Inverse of :meth:`pack`."""
        own = {n.removeprefix("mixture."): a for n, a in arrays.items() if n.startswith("mixture.")}
        self.mixture = Mixture._unpack(settings, own)
        self.change_center, self.change_spread = arrays["change_center"], arrays["change_spread"]
        self._freeze()


def spread_of(columns: Array) -> Array:
    """Standard deviations of the columns; one where there is none."""
    spread: Array = columns.std(axis=0)
    rounding = 1e-12 * np.abs(columns).max(axis=0)
    return np.where(spread > rounding, spread, 1.0)
