"""What an agent reads from an environment's declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from figmn._typing import Array

_DISCOUNT_WITHOUT_LIMIT: Final = 0.99


@dataclass(frozen=True)
class Task:
    """The declared sizes of an environment.

    Attributes
    ----------
    n_variables : int
        Numbers in an observation, D.
    n_actions : int
    first_action : int
        What the environment calls action 0 of the agent.
    time_limit : int or None
        Steps after which an episode is cut off.
    """

    n_variables: int
    n_actions: int
    first_action: int = 0
    time_limit: int | None = None

    @classmethod
    def of(cls, env: Any) -> Task:
        """Read the declaration of a Gymnasium environment.

        Raises
        ------
        TypeError
            If observations are not a box of numbers, or actions not a discrete set.
        """
        spaces = _spaces()
        observations, actions = env.observation_space, env.action_space
        if not isinstance(observations, spaces.Box):
            raise TypeError(
                f"Observations must be a box of numbers, but this environment declares "
                f"{observations}: wrap it in gymnasium.wrappers.FlattenObservation, or in a "
                "wrapper of your own that makes numbers of them."
            )
        if not isinstance(actions, spaces.Discrete):
            raise TypeError(
                f"Actions must be a discrete set, but this environment declares {actions}: "
                "wrap it so that each of a few numbers stands for one action."
            )
        limit = getattr(env.spec, "max_episode_steps", None)
        return cls(
            n_variables=int(np.prod(observations.shape)),
            n_actions=int(actions.n),
            first_action=int(actions.start),
            time_limit=None if limit is None else int(limit),
        )

    @property
    def discount(self) -> float:
        """Discount whose horizon, the sum of its powers, is the time limit."""
        if self.time_limit is None:
            return _DISCOUNT_WITHOUT_LIMIT
        return 1.0 - 1.0 / max(2, self.time_limit)

    def state(self, observation: Any) -> Array:
        """An observation as a checked array of shape (D,)."""
        state = np.array(observation, dtype=np.float64).ravel()
        if state.shape != (self.n_variables,):
            raise ValueError(
                f"The observation has {state.size} numbers, but this agent has learnt from "
                f"observations of {self.n_variables}."
            )
        if not np.all(np.isfinite(state)):
            raise ValueError("The observation contains NaN or infinity.")
        return state


def _spaces() -> Any:
    try:
        from gymnasium import spaces
    except ImportError:
        raise ImportError(
            "figmn.rl needs Gymnasium: install it with pip install figmn[rl]."
        ) from None
    return spaces
