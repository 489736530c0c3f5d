"""Experiment 6: episodes until three control tasks are solved."""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from figmn.rl import Agent, History, PlanningAgent, QLearningAgent
from paper import published
from paper.experiment import (
    Check,
    Experiment,
    Figure,
    Plan,
    Result,
    Results,
    Section,
    Table,
    Unit,
)
from paper.plots import Curve, curves
from paper.statistics import Spread
from paper.substitutes import NearestPlanningAgent, TileQLearningAgent
from paper.text import plus_minus, seconds

WINDOW: Final = 100  # episodes whose mean return must reach the threshold
FIRST_SEED: Final = 2000  # nothing was chosen on seeds from here on
MOST_MILLISECONDS: Final = 1.0
FEW_EPISODES: Final = 10  # of a quick run, for each task
_ALGORITHMS: Final = ("FIGMN", "Sarsa(lambda)", "TRPO", "Duel DDQN")


@dataclass(frozen=True)
class Problem:
    """An environment, the return at which it is solved, and when to give up."""

    environment: str
    time_limit: int
    threshold: float
    most_episodes: int


PROBLEMS: Final = {
    "Cart-Pole": Problem("CartPole-v1", 200, 195.0, 500),
    "Mountain Car": Problem("MountainCar-v0", 200, -110.0, 1500),
    "Acrobot": Problem("Acrobot-v1", 500, -100.0, 1500),
}
"""By the paper's names. CartPole-v1 with 200 steps is what CartPole-v0 was."""


@dataclass(frozen=True)
class Contestant:
    """An agent, on how many seeds it is tried, and after how many episodes it is given up."""

    agent: Callable[..., Agent]
    label: str
    n_seeds: int
    patience: int = 1500


CONTESTANTS: Final = {
    "planning": Contestant(PlanningAgent, "planning agent", 10),
    "planning-nearest": Contestant(
        NearestPlanningAgent, "planning, nearest neighbours", 3, patience=200
    ),
    "q-learning": Contestant(QLearningAgent, "Q-learning agent", 10),
    "q-learning-tiles": Contestant(TileQLearningAgent, "Q-learning, tile coding", 2, patience=200),
}
OURS: Final = ("planning", "q-learning")
SUBSTITUTES: Final = {"planning": "planning-nearest", "q-learning": "q-learning-tiles"}


# -- Work ----------------------------------------------------------------------------------


def units(plan: Plan) -> list[Unit]:
    """A unit for each agent, task and seed; none without Gymnasium.

    In a quick run the planning agent alone, for a few episodes with the first of the seeds.
    """
    if importlib.util.find_spec("gymnasium") is None:
        return []
    first = FIRST_SEED + 10 * plan.seed
    if not plan.full:
        return [_unit("planning", problem, first, FEW_EPISODES) for problem in reversed(PROBLEMS)]
    return [
        _unit(name, problem, seed, min(PROBLEMS[problem].most_episodes, contestant.patience))
        for name, contestant in CONTESTANTS.items()
        # The longest first, so that no core is left with one of them at the end.
        for problem in reversed(PROBLEMS)
        for seed in range(first, first + contestant.n_seeds)
    ]


def _unit(contestant: str, problem: str, seed: int, episodes: int) -> Unit:
    return Unit(
        f"{contestant}-{problem}-{seed}".replace(" ", "-").lower(),
        {"contestant": contestant, "problem": problem, "seed": seed, "episodes": episodes},
    )


def measure(contestant: str, problem: str, seed: int, episodes: int) -> Result:
    """Let an agent learn until the task is solved, or for a number of episodes.

    Parameters
    ----------
    contestant : {"planning", "planning-nearest", "q-learning", "q-learning-tiles"}
    problem : {"Cart-Pole", "Mountain Car", "Acrobot"}
    seed : int
        Of the agent and of the environment.
    episodes : int
        At most; every one of them is one of learning, and counts.
    """
    import gymnasium

    task = PROBLEMS[problem]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Gymnasium's, of old environments
        env = gymnasium.make(task.environment, max_episode_steps=task.time_limit)
    agent = CONTESTANTS[contestant].agent(seed=seed)

    def is_solved(history: History) -> bool:
        # Only the latest window is new.
        recent = history.returns[-WINDOW:]
        return len(recent) == WINDOW and bool(np.mean(recent) >= task.threshold)

    start = time.process_time()
    history = agent.learn(env, episodes, until=is_solved, progress=False)
    return {
        "contestant": contestant,
        "problem": problem,
        "seed": seed,
        "solved": history.episodes_to_solve(task.threshold, WINDOW),
        "returns": history.returns,
        "steps": sum(history.lengths),
        "seconds": time.process_time() - start,
    }


# -- What came out -------------------------------------------------------------------------


def _runs(results: Results, contestant: str, problem: str) -> list[Result]:
    runs = (
        r for r in results.values() if (r["contestant"], r["problem"]) == (contestant, problem)
    )
    return sorted(runs, key=lambda run: int(run["seed"]))


def _episodes(runs: list[Result]) -> Spread:
    """Episodes to solve; a run that was not solved counts with all of its episodes."""
    counts = [len(r["returns"]) if r["solved"] is None else r["solved"] for r in runs]
    return Spread(float(np.mean(counts)), float(np.std(counts)))


def _early_return(runs: list[Result]) -> Spread:
    means = [np.mean(run["returns"][:WINDOW]) for run in runs]
    return Spread(float(np.mean(means)), float(np.std(means)))


def _unsolved(runs: list[Result]) -> int:
    return sum(run["solved"] is None for run in runs)


def _episodes_cell(runs: list[Result]) -> str:
    if not runs:
        return "-"
    if _unsolved(runs) == len(runs):
        return f"unsolved after {max(len(run['returns']) for run in runs)}"
    note = f", {_unsolved(runs)} of {len(runs)} unsolved" if _unsolved(runs) else ""
    return plus_minus(_episodes(runs)) + note


def _milliseconds(runs: list[Result]) -> float:
    spent: float = sum(run["seconds"] for run in runs)
    steps: int = sum(run["steps"] for run in runs)
    return 1e3 * spent / steps


def published_cell(problem: str, algorithm: str) -> str:
    """Episodes that the paper gives, or a dash."""
    value = published.EPISODES[problem].get(algorithm)
    if value is None:
        return "-"
    return plus_minus(value) if value.deviation else f"{value.mean:.0f}"


def _main_table(results: Results) -> Table:
    ours = OURS if results else ()
    return Table(
        "Episodes until a task is solved (paper: table 5)",
        (
            "task",
            *(f"paper: {algorithm}" for algorithm in _ALGORITHMS),
            *(CONTESTANTS[name].label for name in ours),
        ),
        [
            (
                problem,
                *(published_cell(problem, algorithm) for algorithm in _ALGORITHMS),
                *(_episodes_cell(_runs(results, name, problem)) for name in ours),
            )
            for problem in PROBLEMS
        ],
        (
            f"Solved: the mean return of {WINDOW} consecutive episodes reaches "
            + ", ".join(f"{task.threshold:g} ({name})" for name, task in PROBLEMS.items())
            + ". Counted are the episodes before them, so 0 means that the very first "
            f"{WINDOW} reach it, exploring ones included.",
        ),
    )


def _few_episodes_table(results: Results) -> Table:
    """Returns of a quick run, episode by episode."""

    def cells(problem: str) -> tuple[str, ...]:
        (run,) = _runs(results, "planning", problem)
        returns = run["returns"]
        return (
            problem,
            f"{PROBLEMS[problem].threshold:g}",
            ", ".join(f"{value:.0f}" for value in returns),
            f"{np.mean(returns[len(returns) // 2 :]):.1f}",
        )

    return Table(
        f"The planning agent's first {FEW_EPISODES} episodes, of one run on each task",
        ("task", "solved at a mean of", "returns, in order", "mean of the second half"),
        [cells(problem) for problem in PROBLEMS],
        (
            f"A few episodes show that the agent learns, and not that a task is solved: that is "
            f"said of {WINDOW} episodes.",
        ),
    )


def _runs_table(results: Results) -> Table:
    def cells(name: str, problem: str) -> tuple[str, ...]:
        runs = _runs(results, name, problem)
        solved = (("unsolved" if r["solved"] is None else f"{r['solved']}") for r in runs)
        return (
            f"{CONTESTANTS[name].label}, {problem}",
            f"{runs[0]['seed']} to {runs[-1]['seed']}",
            ", ".join(solved),
            plus_minus(_early_return(runs)),
            f"{_milliseconds(runs):.2f}",
        )

    return Table(
        "Every run",
        (
            "agent and task",
            "seeds",
            "episodes to solve, seed by seed",
            f"mean return of the first {WINDOW} episodes",
            "ms a step",
        ),
        [cells(name, problem) for name in CONTESTANTS for problem in PROBLEMS],
        (
            "Milliseconds of one processor for a step of the environment, with acting, "
            "learning and planning. The agents with the mixture replaced are given up after "
            + " and ".join(f"{CONTESTANTS[name].patience}" for name in SUBSTITUTES.values())
            + " episodes.",
        ),
    )


def _substitutes_table(results: Results) -> Table:
    rows = []
    for name, substitute in SUBSTITUTES.items():
        for problem in PROBLEMS:
            other = _runs(results, substitute, problem)
            seeds = {run["seed"] for run in other}
            own = [run for run in _runs(results, name, problem) if run["seed"] in seeds]
            rows.append(
                (
                    f"{CONTESTANTS[name].label}, {problem}",
                    _episodes_cell(own),
                    _episodes_cell(other),
                    plus_minus(_early_return(own)),
                    plus_minus(_early_return(other)),
                )
            )
    return Table(
        "The mixture replaced: nearest neighbours for the planning agent's model, tile coding "
        "for the Q-learning agent's values",
        (
            "agent and task",
            "episodes, mixture",
            "episodes, replaced",
            f"return of the first {WINDOW}, mixture",
            "the same, replaced",
        ),
        rows,
        ("The same seeds on both sides.",),
    )


def _figure(results: Results) -> Figure:
    panels = {}
    for problem, task in PROBLEMS.items():
        lines = []
        for name, contestant in CONTESTANTS.items():
            returns = [run["returns"][:WINDOW] for run in _runs(results, name, problem)]
            mean = np.mean(returns, axis=0)
            lines.append(Curve(contestant.label, range(1, len(mean) + 1), mean))
        panels[f"{problem}, solved at {task.threshold:g}"] = lines
    return Figure(
        "learning-curves",
        f"Returns of the first {WINDOW} episodes, mean over the seeds.",
        curves(panels, "episode", "return"),
    )


def _checks(results: Results) -> tuple[Check, ...]:
    checks = []
    for problem in PROBLEMS:
        runs = _runs(results, "planning", problem)
        bound = published.EPISODES[problem]["FIGMN"].mean
        checks.append(
            Check(
                f"{problem}: all of {len(runs)} fresh seeds solved, in fewer episodes than the "
                f"paper's {bound:.1f}",
                _episodes_cell(runs),
                _unsolved(runs) == 0 and _episodes(runs).mean < bound,
            )
        )
    slowest = max(_milliseconds(_runs(results, "q-learning", name)) for name in PROBLEMS)
    checks.append(
        Check(
            f"A step of the Q-learning agent takes less than {MOST_MILLISECONDS:g} ms on average",
            f"{slowest:.2f} ms at most",
            slowest < MOST_MILLISECONDS,
        )
    )
    return tuple(checks)


def present(plan: Plan, results: Results) -> Section:
    """The paper's table of episodes, with ours if they were run in full."""
    title = "Reinforcement learning"
    if not results:
        reason = "Not run: Gymnasium is missing. Install it with `pip install 'figmn[rl]'`."
        return Section(title, (reason,), (_main_table({}),))
    if not plan.full:
        return Section(
            title,
            (
                "The planning agent learns a model of its environment with mixtures and plans on "
                f"it. In this quick run: {FEW_EPISODES} episodes of each task with one seed, "
                "every one of them of learning. How many it takes until a task is solved, with "
                "ten seeds and beside the Q-learning agent, takes hours: `make results`.",
            ),
            (_few_episodes_table(results), _main_table({})),
        )
    total = sum(run["seconds"] for run in results.values())
    return Section(
        title,
        (
            "The planning agent learns a model of its environment with mixtures and plans on "
            "it; the Q-learning agent is the paper's, with one mixture over state and value for "
            "each action. One set of defaults for all tasks, chosen on other seeds. Every "
            "episode is one of learning, and counts; the agents do not know the threshold. A "
            "run that is not solved counts with all of its episodes.",
            f"All {len(results)} runs together took {seconds(total)} of one processor.",
        ),
        (
            _main_table(results),
            _figure(results),
            _runs_table(results),
            _substitutes_table(results),
        ),
        _checks(results),
    )


EXPERIMENT: Final = Experiment(
    "rl",
    "episodes until cart-pole, mountain car and acrobot are solved (table 5)",
    units,
    measure,
    present,
    parallel=True,
    spared=("estimators",),
)
