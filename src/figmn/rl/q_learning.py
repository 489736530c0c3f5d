"""Q-learning with a mixture for each action."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np

from figmn._typing import Array, Index
from figmn.mixture import Mixture
from figmn.mixture.validation import check_count, check_number
from figmn.rl.agent import Agent
from figmn.rl.environment import Task
from figmn.rl.memory import Episode, Memory
from figmn.rl.regression import FrozenRegression

_LEAST_ERROR: Final = 1e-9
_RESCALE: Final = 1.5  # learn anew when a variable's spread has changed by this factor


class MixtureValues:
    """Values of actions: one mixture over [state, value] for each action.

    States and values are in units of their spread. A state where an action has not
    been tried, judged by the density of that action's mixture, is given the optimistic
    value: as if ``doubt`` rows with it had been spread over the whole space.

    Parameters
    ----------
    n_variables, n_actions : int
    optimistic : float
    doubt : float
    **settings
        As for :class:`figmn.Mixture`.
    """

    def __init__(
        self,
        n_variables: int,
        n_actions: int,
        *,
        optimistic: float,
        doubt: float,
        **settings: Any,
    ) -> None:
        self.optimistic = optimistic
        self.n_variables = n_variables
        self.mixtures = [Mixture(n_variables + 1, scale=1.0, **settings) for _ in range(n_actions)]
        self._frozen: list[FrozenRegression | None] = [None] * n_actions
        self._doubt = doubt * (2.0 * np.pi) ** (-n_variables / 2.0)

    def learn(self, states: Array, actions: Index, values: Array) -> None:
        """Learn values of shape (N,) of actions in states of shape (N, D), in that order."""
        rows = np.column_stack([states, values])
        for action in np.unique(actions):
            mixture = self.mixtures[action]
            mixture.learn(rows[actions == action])
            self._frozen[action] = FrozenRegression.of(mixture, self.n_variables)

    def refreeze(self) -> None:
        """Bring the compiled regressions in line with the mixtures."""
        for action, mixture in enumerate(self.mixtures):
            if mixture.n_components:
                self._frozen[action] = FrozenRegression.of(mixture, self.n_variables)

    def predict(self, states: Array) -> tuple[Array, Array, Array]:
        """Means, optimistic means and standard errors, each of shape (N, A)."""
        shape = (len(states), len(self.mixtures))
        means = np.full(shape, self.optimistic)
        hopeful, errors = means.copy(), np.zeros(shape)
        for action, frozen in enumerate(self._frozen):
            if frozen is None:
                continue
            answer = frozen.predict(states)
            mass = self.mixtures[action].masses.sum()
            evidence = mass * np.exp(answer.log_density) / self._doubt
            means[:, action] = answer.mean[:, 0]
            hopeful[:, action] = (self.optimistic + evidence * answer.mean[:, 0]) / (1 + evidence)
            errors[:, action] = np.sqrt(answer.variance[:, 0] / (1.0 + evidence))
        return means, hopeful, errors


class QLearningAgent(Agent):
    r"""Model-free agent: Q-learning with one mixture over [state, value] for each action.

    An episode is learnt when it is over, from its end to its beginning, with the targets

    .. math:: G_t = r_t + \gamma \left((1 - \lambda) \max_a Q(s_{t+1}, a)
        + \lambda G_{t+1}\right)

    (with :math:`\lambda = 0` where the next action was not the one now thought best), and
    some earlier episodes are learnt again. The agent explores by drawing each
    action's value from its distribution (the conditional mean and covariance that the
    mixtures give), and by valuing what it does not know optimistically. What is drawn,
    once for each episode, is how many standard errors the value deviates from its mean,
    as a linear function of the state for each action.

    Parameters
    ----------
    discount : float or None, default=None
        With None it follows from the environment's time limit T: 1 - 1 / T.
    trace : float, default=0.9
        The weight :math:`\lambda` of what really followed, against what was expected.
    replays : int, default=4
        Earlier episodes to learn again after each one.
    memory : int, default=20000
        Steps to remember for that.
    doubt : float, default=1.0
        Weight of the optimistic value against rows learnt; more explores longer.
    delta, beta, half_life
        As for :class:`figmn.Mixture`, for states and values in units of their spread.
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
        "discount", "trace", "replays", "memory", "doubt", "delta", "beta", "half_life", "seed",
    )  # fmt: skip

    def __init__(
        self,
        *,
        discount: float | None = None,
        trace: float = 0.9,
        replays: int = 4,
        memory: int = 20_000,
        doubt: float = 1.0,
        delta: float = 0.5,
        beta: float = 0.05,
        half_life: float | None = 2000.0,
        seed: int | None = None,
    ) -> None:
        super().__init__(discount=discount, seed=seed)
        self.trace = check_number(trace, "trace", 0.0, 1.0)
        self.replays = check_count(replays, "replays", 0)
        self.memory = check_count(memory, "memory", 1)
        self.doubt = check_number(doubt, "doubt", 0.0, 1e6)
        self.delta = delta
        self.beta = beta
        self.half_life = half_life
        self._make_values(1, 1, 0.0)  # settings that no mixture takes show now

    def values(self, observations: Any) -> Array:
        """Values of all actions in N observations, of shape (N, A), without optimism."""
        task = self._begun()
        states = np.array([task.state(observation) for observation in observations])
        means = self._values.predict(self._standard(states))[0]
        return means * self._unit

    # -- Acting ----------------------------------------------------------------

    def _begin(self, task: Task) -> None:
        self._memory = Memory(self.memory)
        self._center, self._spread = np.zeros(task.n_variables), np.ones(task.n_variables)
        self._unit = 1.0
        self._values = self._make_values(task.n_variables, task.n_actions, 0.0)

    def _make_values(self, n_variables: int, n_actions: int, optimistic: float) -> MixtureValues:
        """What holds the values; here, so that it can be replaced by something else."""
        return MixtureValues(
            n_variables,
            n_actions,
            optimistic=optimistic,
            doubt=self.doubt,
            delta=self.delta,
            beta=self.beta,
            half_life=self.half_life,
        )

    def _best_action(self, state: Array) -> int:
        means, _, _ = self._values.predict(self._standard(state[np.newaxis]))
        return int(np.argmax(means[0]))

    def _exploring_action(self, state: Array) -> int:
        standard = self._standard(state[np.newaxis])
        _, hopeful, errors = self._values.predict(standard)
        place = np.append(standard[0], 1.0)
        deviations = self._draw @ place / np.linalg.norm(place)
        # Where nothing is known, all errors are zero and the draw alone decides.
        return int(np.argmax(hopeful[0] + (errors[0] + _LEAST_ERROR) * deviations))

    def _standard(self, states: Array) -> Array:
        standard: Array = (states - self._center) / self._spread
        return standard

    # -- Learning --------------------------------------------------------------

    def _start(self, state: Array) -> None:
        self._memory.start(state)
        # One draw for an episode: drawn anew at each step, deviations would cancel out
        # and the agent would tremble on the spot instead of going somewhere.
        task = self._begun()
        self._draw = self._random.standard_normal((task.n_actions, task.n_variables + 1))

    def _step(self, state: Array, action: int, reward: float, after: Array, ended: bool) -> None:
        self._memory.step(action, reward, after, ended)

    def _finish(self) -> None:
        latest = self._memory.finish()
        if self._rescale():
            for episode in self._memory.episodes:
                self._learn_backwards(episode)
        else:
            self._learn_backwards(latest)
        earlier = list(self._memory.episodes)[:-1]
        for _ in range(min(self.replays, len(earlier))):
            self._learn_backwards(earlier[self._random.integers(len(earlier))])

    def _rescale(self) -> bool:
        """Take new units if the old ones no longer fit, and say so: all is to be learnt anew."""
        steps = self._memory.transitions()
        spread = steps.before.std(axis=0)
        spread[spread == 0.0] = 1.0
        change = np.abs(np.log(spread / self._spread)).max()
        highest = float(steps.rewards.max()) / (1.0 - self._discount + 1e-9)
        optimistic = max(0.0, highest)  # an end at once is worth nothing
        unit = np.abs(steps.rewards).max() / (1.0 - self._discount + 1e-9) / 4.0 or 1.0
        fits = change < np.log(_RESCALE) and np.isclose(unit, self._unit)
        if fits and np.isclose(optimistic / unit, self._values.optimistic):
            return False
        self._center, self._spread, self._unit = steps.before.mean(axis=0), spread, float(unit)
        task = self._begun()
        self._values = self._make_values(task.n_variables, task.n_actions, optimistic / unit)
        return True

    def _learn_backwards(self, episode: Episode) -> None:
        states = self._standard(episode.states)
        targets = self._targets(episode, self._values.predict(states[1:])[1])
        self._values.learn(states[-2::-1], episode.actions[::-1], targets[::-1])

    def _targets(self, episode: Episode, expected: Array) -> Array:
        """Values that the actions of an episode had.

        Parameters
        ----------
        episode : Episode
        expected : array of shape (T, A)
            Values of all actions after each step, as far as is known.
        """
        best = expected.max(axis=1)
        if episode.ended:
            best[-1] = 0.0
        # What followed an action that was not the best says nothing about the best.
        taken = expected[np.arange(len(best) - 1), episode.actions[1:]]
        traces = np.append(np.where(taken < best[:-1], 0.0, self.trace), 0.0)
        rewards, followed = episode.rewards / self._unit, 0.0
        targets = np.empty(len(episode))
        for t in range(len(episode) - 1, -1, -1):
            ahead = (1.0 - traces[t]) * best[t] + traces[t] * followed
            followed = targets[t] = rewards[t] + self._discount * ahead
        return targets

    # -- Files -----------------------------------------------------------------

    def _pack_learnt(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays = {**self._memory.arrays(), "center": self._center, "spread": self._spread}
        mixtures = []
        for number, mixture in enumerate(self._values.mixtures):
            mixture_settings, mixture_arrays = mixture._pack()
            mixtures.append(mixture_settings)
            arrays |= {f"{number}.{name}": array for name, array in mixture_arrays.items()}
        optimistic = self._values.optimistic
        return {"unit": self._unit, "optimistic": optimistic, "mixtures": mixtures}, arrays

    def _unpack_learnt(self, settings: dict[str, Any], arrays: dict[str, Any]) -> None:
        task = self._begun()
        self._memory.restore(arrays, task.n_variables, task.n_actions)
        self._center, self._spread = arrays["center"], arrays["spread"]
        self._unit = float(settings["unit"])
        optimistic = float(settings["optimistic"])
        self._values = self._make_values(task.n_variables, task.n_actions, optimistic)
        if len(settings["mixtures"]) != task.n_actions:
            raise ValueError("there must be one mixture for each action")
        for number, mixture_settings in enumerate(settings["mixtures"]):
            start = f"{number}."
            own = {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}
            self._values.mixtures[number] = Mixture._unpack(mixture_settings, own)
        self._values.refreeze()
