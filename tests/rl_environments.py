"""Tiny deterministic environments whose optimal values are known in closed form."""

from __future__ import annotations

import gymnasium
import numpy as np
from gymnasium import spaces


class Chain(gymnasium.Env):
    """States 0 to n - 1 in a row; each step costs one until the last state is reached.

    Actions move left and right, and are called 5 and 6.
    """

    def __init__(self, n_states: int = 6, time_limit: int = 40) -> None:
        self.n_states, self.time_limit = n_states, time_limit
        self.observation_space = spaces.Box(0.0, float(n_states - 1), (1,))
        self.action_space = spaces.Discrete(2, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = 0, 0
        return self._observation(), {}

    def step(self, action):
        self.place = int(np.clip(self.place + (1 if action == 6 else -1), 0, self.n_states - 1))
        self.steps += 1
        ended = self.place == self.n_states - 1
        return self._observation(), -1.0, ended, self.steps >= self.time_limit, {}

    def _observation(self):
        return np.array([self.place], dtype=np.float32)


class Precipice(Chain):
    """The same chain, from its middle: each step earns one, until either end is reached."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.n_states // 2
        return self._observation(), {}

    def step(self, action):
        observation, _, _, cut_off, _ = super().step(action)
        return observation, 1.0, self.place in (0, self.n_states - 1), cut_off, {}


class Grid(gymnasium.Env):
    """A square of side n with walls around it; each step costs one until the far corner."""

    MOVES = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])

    def __init__(self, side: int = 4, time_limit: int = 60) -> None:
        self.side, self.time_limit = side, time_limit
        self.observation_space = spaces.Box(0.0, float(side - 1), (2,))
        self.action_space = spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = np.zeros(2, dtype=int), 0
        return self.place.astype(np.float32), {}

    def step(self, action):
        self.place = np.clip(self.place + self.MOVES[action], 0, self.side - 1)
        self.steps += 1
        ended = bool(np.all(self.place == self.side - 1))
        cut_off = self.steps >= self.time_limit
        return self.place.astype(np.float32), -1.0, ended, cut_off, {}


def value_of_distance(steps, discount: float):
    """Value of a state from which the goal is so many steps away, each of which costs one."""
    return -(1.0 - discount ** np.asarray(steps)) / (1.0 - discount)
