"""The agents with something else in the mixture's place, to see what it contributes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from scipy.spatial import KDTree

from figmn.rl import PlanningAgent, QLearningAgent
from paper.typing import AnyArray, Array

_NEIGHBOURS: Final = 8
_OTHER_ACTION: Final = 10.0  # distance to a step with another action, in standard deviations
_HIT: Final = 1e-3  # distance below which a step is taken to be the same


class NearestDynamics:
    """The changes seen in the nearest steps, and no mixture to generalise between them."""

    def __init__(self, n_actions: int) -> None:
        self.n_actions = n_actions

    def fit(self, steps: Any, random: np.random.Generator) -> None:
        """Remember all transitions, of states with unit spread."""
        self._tree = KDTree(self._places(steps.before, steps.actions))
        self._changes = np.column_stack([steps.after - steps.before, steps.rewards])

    def predict(self, states: Array, actions: AnyArray) -> tuple[Array, Array]:
        """Weighted mean of what followed the nearest steps."""
        count = min(_NEIGHBOURS, len(self._changes))
        distances, nearest = self._tree.query(
            self._places(states, actions), k=np.arange(1, count + 1)
        )
        weights = 1.0 / (distances + _HIT) ** 2
        weights /= weights.sum(axis=1, keepdims=True)
        changes = np.einsum("nk,nkm->nm", weights, self._changes[nearest])
        return states + changes[:, :-1], changes[:, -1]

    def _places(self, states: Array, actions: AnyArray) -> Array:
        """States, and actions so far apart that only steps with the same one are near."""
        one_hot = actions[:, np.newaxis] == np.arange(self.n_actions - 1)
        return np.column_stack([states, _OTHER_ACTION * one_hot])


class NearestPlanningAgent(PlanningAgent):
    """Plans on nearest neighbours."""

    def _make_dynamics(self, n_actions: int) -> Any:
        return NearestDynamics(n_actions)


class TileValues:
    """Values of actions in overlapping tilings of the space, from an optimistic start."""

    N_TILINGS: Final = 16
    WIDTH: Final = 1.0  # of a tile, in standard deviations

    def __init__(self, n_variables: int, n_actions: int, *, optimistic: float) -> None:
        self.optimistic = optimistic
        self.n_actions = n_actions
        self.center, self.spread = np.zeros(n_variables), np.ones(n_variables)
        # Odd displacements keep the tilings' diagonals from coinciding.
        shift = np.outer(np.arange(self.N_TILINGS), 2 * np.arange(n_variables) + 1)
        self._offsets = self.WIDTH * (shift % self.N_TILINGS) / self.N_TILINGS
        self._numbers: dict[bytes, int] = {}

    def place(self, steps: Any, values: Array, random: np.random.Generator) -> None:
        """Number the tiles that the steps touch."""
        before = steps.states[steps.first]
        deviations = before.std(axis=0)
        self.center, self.spread = before.mean(axis=0), np.where(deviations > 0.0, deviations, 1.0)
        self._active = np.array(
            [
                [self._numbers.setdefault(tile, len(self._numbers)) for tile in self._tiles(state)]
                for state in steps.states
            ]
        )
        self._steps = steps
        self._weights = np.full((len(self._numbers), self.n_actions), self.optimistic)

    def learn(self, values: Array) -> None:
        """Move each tile's value by the mean error of the steps in it."""
        first, actions = self._steps.first, self._steps.actions
        error = values - self.expected()[first, actions]
        tiles = (self._active[first] * self.n_actions + actions[:, np.newaxis]).ravel()
        size = self._weights.size
        sums = np.bincount(tiles, np.repeat(error, self.N_TILINGS), minlength=size)
        counts = np.bincount(tiles, minlength=size)
        self._weights += (sums / np.maximum(counts, 1)).reshape(self._weights.shape)

    def expected(self) -> Array:
        """Values of all actions in all states of the steps."""
        expected: Array = self._weights[self._active].mean(axis=1)
        return expected

    def finish(self, values: Array) -> None:
        """Let go of the steps."""
        del self._steps, self._active

    def predict(self, states: Array) -> tuple[Array, Array]:
        """Means, and the same again: their optimism is in the start."""
        unseen = np.full(self.n_actions, self.optimistic)
        means = np.empty((len(states), self.n_actions))
        for n, state in enumerate(states):
            numbers = [self._numbers.get(tile) for tile in self._tiles(state)]
            tiles = [unseen if i is None else self._weights[i] for i in numbers]
            means[n] = np.mean(tiles, axis=0)
        return means, means

    def _tiles(self, state: Array) -> list[bytes]:
        standard = (state - self.center) / self.spread
        places = np.floor((standard + self._offsets) / self.WIDTH).astype(np.int16)
        return [bytes([number]) + place.tobytes() for number, place in enumerate(places)]


class TileQLearningAgent(QLearningAgent):
    """Q-learning with tile coding."""

    def _make_values(self, n_variables: int, n_actions: int, low: float, optimistic: float) -> Any:
        return TileValues(n_variables, n_actions, optimistic=optimistic)
