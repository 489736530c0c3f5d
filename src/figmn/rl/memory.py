"""What an agent remembers: its latest episodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from figmn._typing import AnyArray, Array, Index


@dataclass(frozen=True)
class Episode:
    """One episode of T steps.

    Attributes
    ----------
    states : array of shape (T + 1, D)
    actions : int array of shape (T,)
    rewards : array of shape (T,)
    ended : bool
        Whether the last state is terminal, and not merely the last before a time limit.
    """

    states: Array
    actions: Index
    rewards: Array
    ended: bool

    def __len__(self) -> int:
        return len(self.actions)


@dataclass(frozen=True)
class Transitions:
    """Steps of many episodes, oldest first.

    Attributes
    ----------
    before, after : arrays of shape (N, D)
    actions : int array of shape (N,)
    rewards : array of shape (N,)
    terminal : bool array of shape (N,)
        Whether the state after the step is.
    """

    before: Array
    actions: Index
    rewards: Array
    after: Array
    terminal: AnyArray

    def __len__(self) -> int:
        return len(self.actions)

    def standardised(self, center: Array, spread: Array) -> Transitions:
        """The same steps, of states in other units."""
        return replace(
            self, before=(self.before - center) / spread, after=(self.after - center) / spread
        )


class Memory:
    """The latest episodes, whole ones, up to a number of steps; and the one under way.

    The terminal states of forgotten episodes are remembered for ever: an agent that has
    learnt to avoid an end would else forget what it avoids.

    Parameters
    ----------
    most : int
        Steps to remember. The latest episode is kept whatever its length.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.episodes: deque[Episode] = deque()
        self._old_ends: list[Array] = []
        self._steps = 0
        self._states: list[Array] = []
        self._actions: list[int] = []
        self._rewards: list[float] = []
        self._ended = False

    def __len__(self) -> int:
        return self._steps + len(self._actions)

    def start(self, state: Array) -> None:
        """Begin an episode; what was under way is forgotten."""
        self._states, self._actions, self._rewards, self._ended = [state], [], [], False

    def step(self, action: int, reward: float, after: Array, ended: bool) -> None:
        """Add a step to the episode under way."""
        self._actions.append(action)
        self._rewards.append(reward)
        self._states.append(after)
        self._ended = ended

    def finish(self) -> Episode:
        """Put the episode under way among the others, and forget the oldest if need be."""
        episode = self._current()
        self._actions = []
        self._keep(episode)
        return episode

    def _keep(self, episode: Episode) -> None:
        self.episodes.append(episode)
        self._steps += len(episode)
        while self._steps > self.most and len(self.episodes) > 1:
            forgotten = self.episodes.popleft()
            self._steps -= len(forgotten)
            if forgotten.ended:
                self._old_ends.append(forgotten.states[-1].copy())

    def _current(self) -> Episode:
        return Episode(
            np.array(self._states),
            np.array(self._actions, dtype=np.intp),
            np.array(self._rewards),
            self._ended,
        )

    def __iter__(self) -> Iterator[Episode]:
        """All episodes, oldest first, with the one under way last."""
        yield from self.episodes
        if self._actions:
            yield self._current()

    def starts(self) -> Array:
        """First states of the episodes, of shape (number of episodes, D)."""
        return np.array([episode.states[0] for episode in self])

    def ends(self) -> Array:
        """All terminal states ever reached, oldest first, of shape (number of them, D)."""
        ends = self._old_ends + [episode.states[-1] for episode in self if episode.ended]
        return np.array(ends).reshape(len(ends), self._states[0].size)

    def transitions(self) -> Transitions:
        """All steps."""
        episodes = list(self)
        terminal = [np.arange(1, len(e) + 1) == (len(e) if e.ended else -1) for e in episodes]
        return Transitions(
            np.concatenate([episode.states[:-1] for episode in episodes]),
            np.concatenate([episode.actions for episode in episodes]),
            np.concatenate([episode.rewards for episode in episodes]),
            np.concatenate([episode.states[1:] for episode in episodes]),
            np.concatenate(terminal),
        )

    # -- Files -----------------------------------------------------------------

    def arrays(self) -> dict[str, AnyArray]:
        """The finished episodes as named arrays."""
        if not self.episodes:
            return {}
        return {
            "memory.lengths": np.array([len(e) for e in self.episodes], dtype=np.int64),
            "memory.ended": np.array([e.ended for e in self.episodes], dtype=bool),
            "memory.states": np.concatenate([e.states for e in self.episodes]),
            "memory.actions": np.concatenate([e.actions for e in self.episodes]).astype(np.int64),
            "memory.rewards": np.concatenate([e.rewards for e in self.episodes]),
            "memory.old_ends": np.array(self._old_ends, dtype=np.float64),
        }

    def restore(self, arrays: dict[str, AnyArray], n_variables: int, n_actions: int) -> None:
        """Inverse of :meth:`arrays`; raises ValueError on what cannot be a memory."""
        if "memory.lengths" not in arrays:
            return
        lengths, ended, states, actions, rewards = (
            arrays[f"memory.{name}"]
            for name in ("lengths", "ended", "states", "actions", "rewards")
        )
        steps = int(lengths.sum())
        fits = (
            np.all(lengths > 0)
            and ended.shape == lengths.shape
            and states.shape == (steps + len(lengths), n_variables)
            and actions.shape == rewards.shape == (steps,)
            and np.all((actions >= 0) & (actions < n_actions))
            and all(end.shape == (n_variables,) for end in arrays["memory.old_ends"])
            and np.all(np.isfinite(states))
            and np.all(np.isfinite(rewards))
        )
        if not fits:
            raise ValueError("the episodes in memory do not fit together")
        self._old_ends = list(arrays["memory.old_ends"])
        ends = np.cumsum(lengths)
        for number, (length, end) in enumerate(zip(lengths, ends, strict=True)):
            first, last = end - length + number, end + number + 1
            self._keep(
                Episode(
                    states[first:last],
                    actions[end - length : end].astype(np.intp),
                    rewards[end - length : end],
                    bool(ended[number]),
                )
            )
