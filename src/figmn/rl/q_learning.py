"""Q-learning with a mixture for each action."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from figmn._typing import AnyArray, Array
from figmn.rl.agent import Agent
from figmn.rl.environment import Task
from figmn.rl.memory import Episode, Memory
from figmn.rl.values import MixtureValues, Steps
from figmn.validation import check_count, check_number


class QLearningAgent(Agent):
    r"""Model-free agent: Q-learning with one mixture over [state, value] for each action.

    Whenever there is enough new experience, new mixtures are fitted to remembered
    steps (fitted Q iteration): in many sweeps, each of which replaces the values of the
    steps by what the mixtures now say,

    .. math:: r + \gamma \max_{a'} Q(s', a') - \kappa \left(\max_{a'} Q(s, a') - Q(s, a)\right)

    and fits the mixtures' regressions to these. The term with the gap :math:`\kappa`
    (advantage learning) leaves the best action its value, and lowers those of the others:
    one step with another action hardly changes what is still to come, and without it the
    difference is lost in errors of the fit. For the same reason the values to act by are
    means over the latest few fits.

    The agent explores by optimism alone: what an action leads to where the mixture's
    density says that it was not tried is valued as the best there can be, and the sweeps
    carry that back to where the agent is.

    Parameters
    ----------
    discount : float, default=0.99
    gap : float, default=0.8
        The factor :math:`\kappa`, from 0 to below 1.
    sweeps : int, default=100
        In each fit; a fit starts from the values of the one before.
    members : int, default=5
        How many of the latest fits to average.
    growth : float, default=0.1
        The next fit is made after so many times the steps that the last one had to learn.
    batch : int, default=20000
        Steps for a fit, of the latest episode and others chosen at random.
    memory : int, default=300000
        Steps to remember. What is forgotten seems new, and is explored again.
    doubt : float, default=0.001
        Weight of the optimistic value against rows learnt; more explores longer.
    delta : float or None, default=None
        As for :class:`figmn.Mixture`, for states and values in units of their spread. With
        None it is 0.05 D^1.5 for D variables: the more there are, the further apart are the
        steps that a component needs for its regression.
    beta : float, default=0.05
        As for :class:`figmn.Mixture`.
    seed : int or None, default=None
        The same seed gives the same agent; it seeds the environment too.

    Examples
    --------
    >>> import gymnasium
    >>> from figmn.rl import QLearningAgent
    >>> agent = QLearningAgent(seed=0)
    >>> history = agent.learn(gymnasium.make("CartPole-v1"), episodes=3)
    >>> len(history), agent.act([0.0, 0.0, 0.0, 0.0]) in (0, 1)
    (3, True)
    """

    _parameters: ClassVar[tuple[str, ...]] = (
        "discount", "gap", "sweeps", "members", "growth", "batch", "memory", "doubt", "delta",
        "beta", "seed",
    )  # fmt: skip

    def __init__(
        self,
        *,
        discount: float = 0.99,
        gap: float = 0.8,
        sweeps: int = 100,
        members: int = 5,
        growth: float = 0.1,
        batch: int = 20_000,
        memory: int = 300_000,
        doubt: float = 0.001,
        delta: float | None = None,
        beta: float = 0.05,
        seed: int | None = None,
    ) -> None:
        super().__init__(discount=check_number(discount, "discount", 0.0, 0.9999), seed=seed)
        self.gap = check_number(gap, "gap", 0.0, 0.99)
        self.sweeps = check_count(sweeps, "sweeps", 1)
        self.members = check_count(members, "members", 1)
        self.growth = check_number(growth, "growth", 0.0, 1e6)
        self.batch = check_count(batch, "batch", 1)
        self.memory = check_count(memory, "memory", 1)
        self.doubt = check_number(doubt, "doubt", 0.0, 1e6, open_low=True)
        self.delta = delta
        self.beta = beta
        self._make_values(1, 1, 0.0, 0.0)  # settings that no mixture takes show now

    def values(self, observations: Any) -> Array:
        """Values of all actions in N observations, of shape (N, A), without optimism."""
        task = self._begun()
        return self._predict(np.array([task.state(observation) for observation in observations]))[
            0
        ]

    # -- Acting ----------------------------------------------------------------

    def _begin(self, task: Task) -> None:
        self._memory = Memory(self.memory)
        self._members: list[MixtureValues] = []
        self._fitted = np.empty(0)  # values of all steps before the new ones
        self._new_steps = 0

    def _make_values(
        self, n_variables: int, n_actions: int, low: float, optimistic: float
    ) -> MixtureValues:
        """What holds the values; here, so that it can be replaced by something else."""
        return MixtureValues(
            n_variables,
            n_actions,
            low=low,
            optimistic=optimistic,
            doubt=self.doubt,
            delta=0.05 * n_variables**1.5 if self.delta is None else self.delta,
            beta=self.beta,
        )

    def _predict(self, states: Array) -> tuple[Array, Array]:
        """Means and optimistic means, each of shape (N, A), over the latest fits."""
        answers = [member.predict(states) for member in self._members]
        means, hopeful = np.mean(answers, axis=0)
        return means, hopeful

    def _best_action(self, state: Array) -> int:
        if not self._members:
            return 0
        return int(np.argmax(self._predict(state[np.newaxis])[0]))

    def _exploring_action(self, state: Array) -> int:
        n_actions = self._begun().n_actions
        if not self._members:
            return int(self._random.integers(n_actions))
        hopeful = self._predict(state[np.newaxis])[1][0]
        # Actions that nothing is known of are all equally good.
        return int(self._random.choice(np.flatnonzero(hopeful == hopeful.max())))

    # -- Learning --------------------------------------------------------------

    def _start(self, state: Array) -> None:
        self._memory.start(state)

    def _step(self, state: Array, action: int, reward: float, after: Array, ended: bool) -> None:
        self._memory.step(action, reward, after, ended)
        self._new_steps += 1

    def _finish(self) -> None:
        self._memory.finish()
        if self._new_steps >= self.growth * min(len(self._fitted), self.batch):
            self._fit()

    def _fit(self) -> None:
        """Fit new mixtures to remembered steps, from the values of earlier fits."""
        episodes = list(self._memory.episodes)
        chosen = self._choose_episodes(episodes)
        steps = Steps.of([episodes[number] for number in np.flatnonzero(chosen)])
        lengths = [len(episode) for episode in episodes]
        self._fitted = self._with_new_steps(episodes, sum(lengths))
        rows = np.repeat(chosen, lengths)
        task, (low, high) = self._begun(), self._range(episodes)
        values = self._make_values(task.n_variables, task.n_actions, low, high)
        targets = self._fitted[rows]
        values.place(steps, targets, self._random)
        for _ in range(self.sweeps):
            values.learn(targets)
            targets = np.clip(self._targets(steps, values.expected()), low, high)
        values.learn(targets)
        values.finish(targets)
        self._fitted[rows] = targets
        self._members = [*self._members, values][-self.members :]
        self._new_steps = 0

    def _choose_episodes(self, episodes: list[Episode]) -> AnyArray:
        """A mask of as many episodes as make up the batch: the latest, and random others."""
        order = np.append(len(episodes) - 1, self._random.permutation(len(episodes) - 1))
        lengths = np.array([len(episode) for episode in episodes])
        chosen = np.zeros(len(episodes), dtype=bool)
        chosen[order[np.cumsum(lengths[order]) <= self.batch]] = True
        chosen[-1] = True
        return chosen

    def _range(self, episodes: list[Episode]) -> tuple[float, float]:
        """The least and the greatest value there can be; an end at once is worth nothing."""
        horizon = 1.0 / (1.0 - self._discount)
        low = min(float(episode.rewards.min()) for episode in episodes)
        high = max(float(episode.rewards.max()) for episode in episodes)
        return min(0.0, low * horizon), max(0.0, high * horizon)

    def _with_new_steps(self, episodes: list[Episode], n_steps: int) -> Array:
        """Values of all remembered steps: fitted ones, and for the new steps what follows."""
        known = max(0, n_steps - self._new_steps)
        ends = np.cumsum([len(episode) for episode in episodes])
        new = Steps.of(episodes[int(np.searchsorted(ends, known, side="right")) :])
        if self._members:
            expected = self._predict(new.states)[1]
        else:
            _, optimistic = self._range(episodes)
            expected = np.full((len(new.states), self._begun().n_actions), optimistic)
        fitted = self._fitted[len(self._fitted) - known :]
        return np.concatenate([fitted, self._targets(new, expected)])

    def _targets(self, steps: Steps, expected: Array) -> Array:
        """Values that actions turn out to have, given those expected in all states.

        Parameters
        ----------
        steps : Steps
        expected : array of shape (M, A)
            Values of all actions in ``steps.states``.
        """
        best = expected.max(axis=1)
        ahead = np.where(steps.terminal, 0.0, best[steps.first + 1])
        loss = best[steps.first] - expected[steps.first, steps.actions]
        targets: Array = steps.rewards + self._discount * ahead - self.gap * loss
        return targets

    # -- Files -----------------------------------------------------------------

    def _pack_learnt(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays = {**self._memory.arrays(), "fitted": self._fitted}
        members = []
        for number, member in enumerate(self._members):
            member_settings, member_arrays = member.to_state()
            members.append(member_settings)
            arrays |= {f"{number}.{name}": array for name, array in member_arrays.items()}
        return {"new_steps": self._new_steps, "members": members}, arrays

    def _unpack_learnt(self, settings: dict[str, Any], arrays: dict[str, Any]) -> None:
        task = self._begun()
        self._memory.restore(arrays, task.n_variables, task.n_actions)
        self._fitted, self._new_steps = arrays["fitted"], int(settings["new_steps"])
        for number, member_settings in enumerate(settings["members"]):
            start = f"{number}."
            own = {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}
            values = self._make_values(task.n_variables, task.n_actions, 0.0, 0.0)
            values.restore(member_settings, own)
            self._members.append(values)
