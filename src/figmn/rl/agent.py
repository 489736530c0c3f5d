"""What all agents share: the loop over episodes, seeds and files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np

from figmn import storage
from figmn._typing import Array
from figmn.rl.environment import Task
from figmn.rl.history import History
from figmn.validation import check_count, check_number


class Agent(ABC):
    """Learns to act from episodes with a Gymnasium environment.

    A subclass stores its parameters under their own names, and implements what
    happens at a step and at the end of an episode.
    """

    _parameters: ClassVar[tuple[str, ...]] = ("discount", "seed")
    """Names of the constructor's parameters, which are kept in files."""

    def __init__(self, *, discount: float | None, seed: int | None) -> None:
        if discount is not None:
            discount = check_number(discount, "discount", 0.0, 1.0)
        self.discount = discount
        self.seed = None if seed is None else check_count(seed, "seed", 0)
        self.history = History()
        self._random = np.random.default_rng(self.seed)
        self._task: Task | None = None

    # -- For users -------------------------------------------------------------

    def learn(
        self,
        env: Any,
        episodes: int,
        *,
        until: Callable[[History], bool] | None = None,
        progress: bool = True,
    ) -> History:
        """Act in an environment and learn from it; call it again to go on.

        Parameters
        ----------
        env : gymnasium.Env
            With a box of observations and a discrete set of actions.
        episodes : int
            How many more.
        until : callable or None
            Asked with the history after each episode; learning stops when it says True.
        progress : bool, default=True
            Show a progress bar, if ``rich`` is installed and the output is a terminal.

        Returns
        -------
        History
            Of all episodes so far, those of earlier calls included.
        """
        task = Task.of(env)
        if self._task is None:
            self._task = task
            self._begin(task)
        elif task != self._task:
            raise ValueError(
                f"This agent has learnt in an environment with {self._task}, and the new one "
                f"has {task}: make a new agent for it."
            )
        episodes = check_count(episodes, "episodes", 0)
        with _progress_bar(episodes, progress) as advance:
            for _ in range(episodes):
                self._run_episode(env, task)
                advance(self.history)
                if until is not None and until(self.history):
                    break
        return self.history

    def act(self, observation: Any) -> int:
        """The action that seems best, without exploring, as the environment numbers it."""
        task = self._begun()
        return task.first_action + self._best_action(task.state(observation))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agent to a file without pickle; :func:`figmn.load` reads it."""
        storage.save(self, path)

    # -- For subclasses --------------------------------------------------------

    @abstractmethod
    def _begin(self, task: Task) -> None:
        """Prepare for a task, before the first episode."""

    @abstractmethod
    def _best_action(self, state: Array) -> int:
        """The best action in a state of shape (D,), as far as is known."""

    @abstractmethod
    def _exploring_action(self, state: Array) -> int:
        """The action to learn from in a state of shape (D,)."""

    @abstractmethod
    def _start(self, state: Array) -> None:
        """Take note of an episode's first state."""

    @abstractmethod
    def _step(self, state: Array, action: int, reward: float, after: Array, ended: bool) -> None:
        """Take note of a step; ``ended`` if the state after it is terminal."""

    @abstractmethod
    def _finish(self) -> None:
        """Learn from an episode that has ended or was cut off."""

    def _begun(self) -> Task:
        if self._task is None:
            raise RuntimeError("This agent has learnt nothing yet: call learn first.")
        return self._task

    @property
    def _discount(self) -> float:
        return self._begun().discount if self.discount is None else self.discount

    # -- Inside ----------------------------------------------------------------

    def _run_episode(self, env: Any, task: Task) -> None:
        # The environment is seeded once; later episodes differ from the first.
        first = len(self.history) == 0
        observation, _ = env.reset(seed=self.seed if first else None)
        state, total, length, over = task.state(observation), 0.0, 0, False
        self._start(state)
        while not over:
            action = self._exploring_action(state)
            observation, reward, ended, cut_off, _ = env.step(task.first_action + action)
            after = task.state(observation)
            self._step(state, action, float(reward), after, bool(ended))
            state, over = after, bool(ended or cut_off)
            total, length = total + float(reward), length + 1
        self._finish()
        self.history.add(total, length)

    # -- Files -----------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Everything learnt, as plain values and arrays, for a file."""
        task = self._begun()
        settings = {
            "parameters": {name: getattr(self, name) for name in self._parameters},
            "task": vars(task),
            "random": self._random.bit_generator.state,
        }
        arrays = {
            "history.returns": np.array(self.history.returns, dtype=np.float64),
            "history.lengths": np.array(self.history.lengths, dtype=np.int64),
        }
        learnt_settings, learnt_arrays = self._pack_learnt()
        return {**settings, "learnt": learnt_settings}, {**arrays, **learnt_arrays}

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, Any]) -> Self:
        """Inverse of :meth:`to_state`; raises ValueError on anything inconsistent."""
        agent = cls(**settings["parameters"])
        agent._task = Task(**settings["task"])
        agent._begin(agent._task)
        agent._random.bit_generator.state = settings["random"]
        agent.history = History(
            arrays.pop("history.returns").tolist(), arrays.pop("history.lengths").tolist()
        )
        agent._unpack_learnt(settings["learnt"], arrays)
        agent._best_action(np.zeros(agent._task.n_variables))  # what does not fit shows now
        return agent

    @abstractmethod
    def _pack_learnt(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """All that was learnt, as plain values and arrays."""

    @abstractmethod
    def _unpack_learnt(self, settings: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Inverse of :meth:`_pack_learnt`."""


@contextmanager
def _progress_bar(episodes: int, wanted: bool) -> Iterator[Callable[[History], None]]:
    """A function that moves the bar on; it does nothing where there is no bar."""
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        wanted = False
    if not wanted or not Console().is_terminal:
        yield lambda history: None
        return
    with Progress(transient=True) as bar:
        line = bar.add_task("learning", total=episodes)

        def advance(history: History) -> None:
            recent = np.mean(history.returns[-10:])
            text = f"episode {len(history)}, mean return of the last ten {recent:.1f}"
            bar.update(line, advance=1, description=text)

        yield advance
