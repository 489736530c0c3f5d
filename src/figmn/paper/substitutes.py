"""The agents with something else in the mixture's place, to see what it contributes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from figmn._typing import AnyArray, Array, Index
from figmn.rl import PlanningAgent, QLearningAgent
from figmn.rl.dynamics import MixtureDynamics
from figmn.rl.memory import Transitions

_OTHER_ACTION: Final = 10.0  # distance to a step with another action, in standard deviations


class NearestDynamics(MixtureDynamics):
    """The changes seen in the nearest steps, and no mixture to generalise between them."""

    def fit(self, steps: Transitions, random: np.random.Generator) -> None:
        """Remember all transitions."""
        self._remember(steps, np.column_stack([steps.after - steps.before, steps.rewards]))

    def predict(self, states: Array, actions: AnyArray) -> tuple[Array, Array]:
        """Weighted mean of what followed the nearest steps."""
        weights, nearest = self._neighbours(states, actions)
        weights /= weights.sum(axis=1, keepdims=True)
        changes = np.einsum("nk,nkm->nm", weights, self.residuals[nearest])
        return states + changes[:, :-1], changes[:, -1]

    def _with_action(self, states: Array, actions: AnyArray, size: float) -> Array:
        # With no mixture to tell what an action does, only the same action will do.
        return super()._with_action(states, actions, _OTHER_ACTION)


class NearestPlanningAgent(PlanningAgent):
    """Plans on nearest neighbours."""

    def _make_dynamics(self, n_actions: int) -> Any:
        return NearestDynamics(n_actions, delta=self.delta, beta=self.beta, noise=self.noise)


class TileValues:
    """Values of actions in overlapping tilings of the space, from an optimistic start."""

    N_TILINGS: Final = 16
    WIDTH: Final = 1.0  # of a tile, in standard deviations
    RATE: Final = 0.2

    def __init__(self, n_variables: int, n_actions: int, *, optimistic: float) -> None:
        self.optimistic = optimistic
        self.n_actions = n_actions
        # Odd displacements keep the tilings' diagonals from coinciding.
        shift = np.outer(np.arange(self.N_TILINGS), 2 * np.arange(n_variables) + 1)
        self._offsets = self.WIDTH * (shift % self.N_TILINGS) / self.N_TILINGS
        self._tiles: dict[bytes, Array] = {}

    def _active(self, state: Array) -> list[Array]:
        places = np.floor((state + self._offsets) / self.WIDTH).astype(np.int16)
        return [
            self._tiles.setdefault(
                bytes([number]) + place.tobytes(), np.full(self.n_actions, self.optimistic)
            )
            for number, place in enumerate(places)
        ]

    def learn(self, states: Array, actions: Index, values: Array) -> None:
        """Move the active tiles' values towards given ones."""
        for state, action, value in zip(states, actions, values, strict=True):
            tiles = self._active(state)
            error = value - np.mean([tile[action] for tile in tiles])
            for tile in tiles:
                tile[action] += self.RATE * error

    def predict(self, states: Array) -> tuple[Array, Array, Array]:
        """Means, the same again (their optimism is in the start), and no errors."""
        means = np.array([np.mean(self._active(state), axis=0) for state in states])
        return means, means, np.zeros_like(means)


class TileQLearningAgent(QLearningAgent):
    """Q-learning with tile coding."""

    def _make_values(self, n_variables: int, n_actions: int, optimistic: float) -> Any:
        return TileValues(n_variables, n_actions, optimistic=optimistic)
