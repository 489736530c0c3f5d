"""An agent that learns how its environment works, and plans on what it has learnt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np

from figmn._typing import AnyArray, Array
from figmn.rl import loops
from figmn.rl.agent import Agent
from figmn.rl.dynamics import MixtureDynamics, spread_of
from figmn.rl.environment import Task
from figmn.rl.memory import Memory, Transitions
from figmn.rl.planning import Plan
from figmn.validation import check_count, check_number

_FIRST_PLAN: Final = 50  # steps after which to plan for the first time, in mid-episode
_GROWTH: Final = 1.25  # plan again when there are so many times as many steps
_EAGER: Final = 10  # episodes after each of which to plan
_LOSS: Final = 0.2  # share of the values' range by which a plan is found to be too hopeful,
_GROWTH_ON_LOSS: Final = 1.02  # which calls for a new one sooner
_CLOSEST: Final = 0.02  # least distance between points, in standard deviations
_FARTHEST: Final = 0.15  # beyond this, rather leave out old states than spread them more


class PlanningAgent(Agent):
    """Model-based agent: learns how its environment works, and plans on it.

    The model is :class:`figmn.rl.dynamics.MixtureDynamics`, mixtures over [state, action,
    change of state, reward], and the planner :class:`figmn.rl.planning.Plan`.

    As long as nothing distinguishes one outcome from another (all rewards are alike and
    no episode has ended but by its time limit), the agent plans to reach states unlike
    any it has seen. After that it plans for the rewards alone.

    Parameters
    ----------
    discount : float or None, default=None
        With None it follows from the environment's time limit T: 1 - 1 / T.
    points : int, default=600
        States to plan on. Time grows with the square.
    hold : int, default=4
        Most steps that one action is held in a plan.
    memory : int, default=20000
        Steps to remember.
    delta, beta : float
        As for :class:`figmn.Mixture`, for columns in units of their spread.
    noise : float, default=0.01
        Noise added to what the mixture learns to predict, in units of its spread: finer
        differences are not worth a component.
    caution : float, default=1.0
        What it costs a plan to pass through a state unlike any visited: mean absolute
        rewards for each standard deviation of distance from the nearest one.
    seed : int or None, default=None
        The same seed gives the same agent; it seeds the environment too.

    Examples
    --------
    >>> import gymnasium
    >>> from figmn.rl import PlanningAgent
    >>> agent = PlanningAgent(points=100, seed=0)
    >>> history = agent.learn(gymnasium.make("CartPole-v1"), episodes=3)
    >>> len(history), agent.act([0.0, 0.0, 0.0, 0.0]) in (0, 1)
    (3, True)
    """

    _parameters: ClassVar[tuple[str, ...]] = (
        "discount", "points", "hold", "memory", "delta", "beta", "noise", "caution", "seed",
    )  # fmt: skip

    def __init__(
        self,
        *,
        discount: float | None = None,
        points: int = 600,
        hold: int = 4,
        memory: int = 20_000,
        delta: float = 0.5,
        beta: float = 0.1,
        noise: float = 0.01,
        caution: float = 1.0,
        seed: int | None = None,
    ) -> None:
        super().__init__(discount=discount, seed=seed)
        self.points = check_count(points, "points", 4)
        self.hold = check_count(hold, "hold", 1)
        self.memory = check_count(memory, "memory", 1)
        self.delta = check_number(delta, "delta", 0.0, 1e6, open_low=True)
        self.beta = check_number(beta, "beta", 0.0, 1.0)
        self.caution = check_number(caution, "caution", 0.0, 1e6)
        self.noise = check_number(noise, "noise", 0.0, 1.0)

    def values(self, observations: Any) -> Array:
        """Values of all actions in N observations, of shape (N, A)."""
        task = self._begun()
        states = np.array([task.state(observation) for observation in observations])
        return self._required_plan().action_values(self._standard(states))

    # -- Acting ----------------------------------------------------------------

    def _begin(self, task: Task) -> None:
        self._memory = Memory(self.memory)
        self._center, self._spread = np.zeros(task.n_variables), np.ones(task.n_variables)
        self._plan: Plan | None = None
        self._curious = True
        self._planned_at = 0
        self._steps_taken = 0
        self._gain = 0.0
        self._last_state: Array | None = None
        self._last_values = np.zeros(task.n_actions)

    def _make_dynamics(self, n_actions: int) -> Any:
        """The model; here, so that it can be replaced by something else."""
        return MixtureDynamics(n_actions, delta=self.delta, beta=self.beta, noise=self.noise)

    def _best_action(self, state: Array) -> int:
        return 0 if self._plan is None else int(np.argmax(self._action_values(state)))

    def _exploring_action(self, state: Array) -> int:
        if self._plan is None:
            return int(self._random.integers(self._begun().n_actions))
        return int(np.argmax(self._action_values(state)))

    def _action_values(self, state: Array) -> Array:
        """Values of the actions in one state, of shape (A,); remembered for the next step."""
        if state is not self._last_state:
            plan = self._required_plan()
            self._last_values = plan.action_values(self._standard(state[np.newaxis]))[0]
            self._last_state = state
        return self._last_values

    def _standard(self, states: Array) -> Array:
        standard: Array = (states - self._center) / self._spread
        return standard

    def _required_plan(self) -> Plan:
        if self._plan is None:
            raise RuntimeError("This agent has no plan yet: let it learn for an episode.")
        return self._plan

    # -- Learning --------------------------------------------------------------

    def _start(self, state: Array) -> None:
        self._memory.start(state)
        self._gain = 0.0

    def _step(self, state: Array, action: int, reward: float, after: Array, ended: bool) -> None:
        self._memory.step(action, reward, after, ended)
        self._steps_taken += 1
        if ended:
            return
        needed = _GROWTH_ON_LOSS if self._is_disappointing(state, reward, after) else _GROWTH
        if self._steps_taken >= max(_FIRST_PLAN, needed * self._planned_at):
            self._make_plan()

    def _is_disappointing(self, state: Array, reward: float, after: Array) -> bool:
        """Whether steps since the last plan have brought much less than it promised."""
        plan = self._plan
        if plan is None or plan.exploring:
            return False
        promised = self._action_values(state).max()
        self._gain += reward + self._discount * self._action_values(after).max() - promised
        return self._gain < -_LOSS * (plan.highest - plan.lowest)

    def _finish(self) -> None:
        self._memory.finish()
        eager = len(self.history) < _EAGER
        if eager or self._steps_taken >= _GROWTH * self._planned_at:
            self._make_plan()

    def _make_plan(self) -> None:
        """Learn the model anew, in units of what was seen so far, and plan on it."""
        steps, task = self._memory.transitions(), self._begun()
        self._center, self._spread = steps.before.mean(axis=0), spread_of(steps.before)
        steps = steps.standardised(self._center, self._spread)
        dynamics = self._make_dynamics(task.n_actions)
        dynamics.fit(steps, self._random)
        visited, terminal = self._visited(steps)
        if terminal.any() or np.ptp(steps.rewards) > 0.0:
            self._curious = False
        kept = _spread_out(visited, 0, _CLOSEST, self.points // 2)
        draft = Plan(
            dynamics,
            task.n_actions,
            self.hold,
            self._discount,
            visited[kept],
            terminal[kept],
            visited,
            exploring=self._curious,
            caution=self.caution * float(np.abs(steps.rewards).mean()),
        )
        self._plan = self._with_imagined(draft)
        self._plan.solve()
        self._planned_at = self._steps_taken
        self._gain, self._last_state = 0.0, None

    def _visited(self, steps: Transitions) -> tuple[Array, AnyArray]:
        """States seen, the terminal ones first, then the latest, and which are terminal."""
        ends, starts = self._standard(self._memory.ends()), self._standard(self._memory.starts())
        others = steps.after[~steps.terminal]
        visited = np.concatenate([ends[::-1], others[::-1], starts])
        return visited, np.arange(len(visited)) < len(ends)

    def _with_imagined(self, plan: Plan) -> Plan:
        """A plan on more points: states that the model leads to from those it has."""
        ahead = plan.look_ahead(plan.points[~plan.terminal])
        imagined = ahead.arrivals[ahead.discounts > 0.0]
        imagined = imagined[self._random.permutation(len(imagined))]
        points = np.concatenate([plan.points, imagined])
        points = points[_spread_out(points, len(plan.points), _CLOSEST, self.points)]
        terminal = np.zeros(len(points), dtype=bool)
        terminal[: len(plan.points)] = plan.terminal
        return replace(plan, points=points, terminal=terminal)

    # -- Files -----------------------------------------------------------------

    def _pack_learnt(self) -> tuple[dict[str, Any], dict[str, Any]]:
        plan = self._required_plan()
        settings, arrays = plan.dynamics.to_state()  # type: ignore[attr-defined]
        arrays |= self._memory.arrays()
        arrays |= {
            "center": self._center,
            "spread": self._spread,
            "points": plan.points,
            "terminal": plan.terminal,
            "visited": plan.visited,
            "coefficients": plan.coefficients,
        }
        return {
            "dynamics": settings,
            "curious": self._curious,
            "exploring": plan.exploring,
            "caution": plan.caution,
            "lowest": plan.lowest,
            "highest": plan.highest,
            "steps_taken": self._steps_taken,
            "planned_at": self._planned_at,
        }, arrays

    def _unpack_learnt(self, settings: dict[str, Any], arrays: dict[str, Any]) -> None:
        task = self._begun()
        self._memory.restore(arrays, task.n_variables, task.n_actions)
        self._center, self._spread = arrays["center"], arrays["spread"]
        dynamics = self._make_dynamics(task.n_actions)
        dynamics.restore(settings["dynamics"], arrays)
        self._plan = Plan(
            dynamics,
            task.n_actions,
            self.hold,
            self._discount,
            arrays["points"],
            arrays["terminal"],
            arrays["visited"],
            bool(settings["exploring"]),
            float(settings["caution"]),
            arrays["coefficients"],
            float(settings["lowest"]),
            float(settings["highest"]),
        )
        self._curious = bool(settings["curious"])
        self._steps_taken = int(settings["steps_taken"])
        self._planned_at = int(settings["planned_at"])


def _spread_out(points: Array, n_first: int, closest: float, most: int) -> AnyArray:
    """Positions of at most so many points, the first ones among them, evenly apart.

    The distance between them grows until they are few enough, but not beyond a limit:
    then the last points go.
    """
    separation = closest
    while True:
        kept = loops.spread_out(points, n_first, separation, most)
        if len(kept) < most or separation > _FARTHEST:
            return kept
        separation *= 1.2
