"""Values of states under a learnt model, by policy iteration on scattered points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from scipy.spatial import KDTree

from figmn._typing import AnyArray, Array, Index
from figmn.rl.spline import Spline, distance_basis

_SMOOTHING: Final = 1e-3
_IMPROVEMENTS: Final = 60  # at most; some fifteen are usual
_EVALUATIONS: Final = 10  # sweeps of the policy found, between two improvements
_TOLERANCE: Final = 1e-4  # of the range of values
_CURIOSITY: Final = 0.97  # discount of novelty, so that the nearest comes first


class Dynamics(Protocol):
    """A model of an environment."""

    def predict(self, states: Array, actions: Index) -> tuple[Array, Array]:
        """States of shape (N, D) after actions of shape (N,), and the rewards on the way."""
        ...


@dataclass(frozen=True)
class Lookahead:
    """What follows each action, held for 1 to H steps, in N states.

    Attributes
    ----------
    arrivals : array of shape (N, A, H, D)
    rewards : array of shape (N, A, H)
        Discounted sum up to the arrival.
    discounts : array of shape (N, A, H)
        Of what comes after it; zero if nothing does.
    basis : array of shape (N * A * H, P + 1)
        Of the plan's spline at the arrivals.
    """

    arrivals: Array
    rewards: Array
    discounts: Array
    basis: Array


@dataclass
class Plan:
    """Values of states, and what they say about actions.

    A value is the best, over actions and over the number of steps that an action is
    held, of the rewards on the way plus the interpolated value of the arrival. Holding
    matters since a single step often moves less than the points are apart: over several
    steps, differences between actions outgrow the errors of interpolation.

    Attributes
    ----------
    dynamics : Dynamics
    n_actions, hold : int
    discount : float
    points : array of shape (P, D)
        States with values, of which most were visited and some imagined.
    terminal : bool array of shape (P,)
        Their values are zero, and a state whose nearest point is terminal is itself.
    visited : array of shape (V, D)
    exploring : bool
        Whether the distance of arrivals from all visited states is sought, instead of rewards.
    caution : float
        Otherwise, what it costs to pass through a state for each unit of that distance,
        since the model may be wrong there.
    coefficients : array of shape (P + 1,)
    lowest, highest : float
        Range of the points' values, which no interpolated value leaves.
    """

    dynamics: Dynamics
    n_actions: int
    hold: int
    discount: float
    points: Array
    terminal: AnyArray
    visited: Array
    exploring: bool = False
    caution: float = 0.0
    coefficients: Array | None = None
    lowest: float = 0.0
    highest: float = 0.0

    def __post_init__(self) -> None:
        self._visited_tree = KDTree(self.visited)

    def look_ahead(self, states: Array) -> Lookahead:
        """Follow every action from states of shape (N, D) for as long as it may be held."""
        n, shape = len(states), (len(states), self.n_actions, self.hold)
        arrivals, step_rewards = np.empty((*shape, states.shape[1])), np.empty(shape)
        actions = np.tile(np.arange(self.n_actions), n)
        current = np.repeat(states, self.n_actions, axis=0)
        for step in range(self.hold):
            current, rewards = self.dynamics.predict(current, actions)
            arrivals[:, :, step] = current.reshape(n, self.n_actions, -1)
            step_rewards[:, :, step] = rewards.reshape(n, self.n_actions)
        flat = arrivals.reshape(-1, states.shape[1])
        basis = distance_basis(flat, self.points)
        ended = self.terminal[basis[:, :-1].argmax(axis=1)].reshape(shape)
        novelty = self._visited_tree.query(flat)[0].reshape(shape)
        return Lookahead(arrivals, *self._objective(step_rewards, ended, novelty), basis)

    def _objective(self, rewards: Array, ended: AnyArray, novelty: Array) -> tuple[Array, Array]:
        """What is sought on the way to each arrival, and the discounts of what comes after it.

        All arrays are of shape (N, A, H).
        """
        powers = self.discount ** np.arange(self.hold + 1)
        over = np.logical_or.accumulate(ended, axis=2)
        discounts = np.where(over, 0.0, powers[1:])
        if self.exploring:
            return novelty, discounts * _CURIOSITY ** np.arange(1, self.hold + 1)
        over_before = np.zeros_like(over)
        over_before[:, :, 1:] = over[:, :, :-1]
        gains = powers[:-1] * (rewards - self.caution * novelty)
        return np.cumsum(np.where(over_before, 0.0, gains), axis=2), discounts

    def action_values(self, states: Array) -> Array:
        """Values of the actions in states of shape (N, D), of shape (N, A)."""
        assert self.coefficients is not None, "solve comes first"
        ahead = self.look_ahead(states)
        after = np.clip(ahead.basis @ self.coefficients, self.lowest, self.highest)
        values = ahead.rewards + ahead.discounts * after.reshape(ahead.rewards.shape)
        best: Array = values.max(axis=2)
        return best

    def solve(self) -> Array:
        """Find the values of the points, of shape (P,), by modified policy iteration."""
        spline = Spline(self.points, _SMOOTHING)
        ahead = self.look_ahead(self.points)
        n_options = self.n_actions * self.hold
        basis = ahead.basis.astype(np.float32)  # rounding is nothing beside interpolation
        rewards, discounts = ahead.rewards.ravel(), ahead.discounts.ravel()
        first_option = np.arange(len(self.points)) * n_options
        values = np.zeros(len(self.points))

        def backed_up(basis: AnyArray, rewards: Array, discounts: Array) -> Array:
            coefficients = spline.coefficients(values).astype(np.float32)
            after = np.clip(basis @ coefficients, values.min(), values.max())
            result: Array = rewards + discounts * after
            return result

        for _ in range(_IMPROVEMENTS):
            options = backed_up(basis, rewards, discounts).reshape(-1, n_options)
            improved = np.where(self.terminal, 0.0, options.max(axis=1))
            change, values = np.abs(improved - values).max(), improved
            if change <= _TOLERANCE * np.abs(values).max():
                break
            chosen = first_option + options.argmax(axis=1)
            policy = basis[chosen], rewards[chosen], discounts[chosen]
            for _ in range(_EVALUATIONS):
                values = np.where(self.terminal, 0.0, backed_up(*policy))
        self.coefficients = spline.coefficients(values)
        self.lowest, self.highest = float(values.min()), float(values.max())
        return values
