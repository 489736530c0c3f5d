"""Episodes until cart-pole, mountain car and acrobot are solved, many seeds each.

Run it with ``make rl``. Solved means that the mean return of 100 consecutive episodes
reaches the threshold; what counts is the episodes before them. Every episode is one of
learning. A run that does not get there is reported as such, and counts with all of its
episodes. Each finished run is kept under ``output/rl`` and not repeated, unless the
library's code has changed since.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

import figmn
from figmn.rl import Agent, History, PlanningAgent, QLearningAgent
from rl_ablation import NearestPlanningAgent, TileQLearningAgent

AGENTS: dict[str, type[Agent]] = {
    "planning": PlanningAgent,
    "planning, nearest neighbours": NearestPlanningAgent,
    "Q-learning": QLearningAgent,
    "Q-learning, tile coding": TileQLearningAgent,
}
WINDOW = 100


@dataclass(frozen=True)
class Problem:
    """An environment, the return at which it is solved, and when to give up."""

    name: str
    environment: str
    time_limit: int
    threshold: float
    most_episodes: int
    paper: str


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem("cart-pole", "CartPole-v1", 200, 195.0, 500, "108.8 ± 22.5"),
        Problem("mountain car", "MountainCar-v0", 200, -110.0, 1500, "403.8 ± 79.2"),
        Problem("acrobot", "Acrobot-v1", 500, -100.0, 1500, "301.6 ± 69.1"),
    )
}


def code_digest() -> str:
    """Digest of the library: a run that other code has made is not taken for one of this."""
    digest = hashlib.sha256()
    for source in sorted(Path(figmn.__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def run(
    agent_name: str, problem_name: str, seed: int, folder: Path, patience: int
) -> dict[str, Any]:
    """Learn until solved or given up; the result of an earlier run, if there is one."""
    kept = folder / f"{agent_name}-{problem_name}-{seed}.json".replace(" ", "-").replace(",", "")
    problem = PROBLEMS[problem_name]
    episodes = min(problem.most_episodes, patience)
    if kept.exists():
        result: dict[str, Any] = json.loads(kept.read_text())
        finished = result["solved"] is not None or len(result["returns"]) >= episodes
        if finished and result.get("code") == code_digest():
            return result
    env = gymnasium.make(problem.environment, max_episode_steps=problem.time_limit)
    agent = AGENTS[agent_name](seed=seed)

    def is_solved(history: History) -> bool:
        # Only the latest window is new.
        recent = history.returns[-WINDOW:]
        return len(recent) == WINDOW and np.mean(recent) >= problem.threshold

    start = time.process_time()
    with threadpool_limits(limits=1):  # the cores go to the seeds
        history = agent.learn(env, episodes, until=is_solved, progress=False)
    result = {
        "code": code_digest(),
        "agent": agent_name,
        "problem": problem_name,
        "seed": seed,
        "solved": history.episodes_to_solve(problem.threshold, WINDOW),
        "returns": history.returns,
        "steps": sum(history.lengths),
        "seconds": time.process_time() - start,
    }
    kept.write_text(json.dumps(result))
    return result


def summary(results: list[dict[str, Any]]) -> str:
    """Mean and deviation of the episodes to solve, and how many runs were not solved."""
    episodes = [len(r["returns"]) if r["solved"] is None else r["solved"] for r in results]
    unsolved = sum(r["solved"] is None for r in results)
    text = f"{np.mean(episodes):.1f} ± {np.std(episodes):.1f}"
    return text if unsolved == 0 else f"{text} ({unsolved} of {len(results)} unsolved)"


def print_tables(results: list[dict[str, Any]]) -> None:
    """Episodes to solve for each agent and problem, returns meanwhile, and the time of a step.

    Where the first hundred episodes already reach the threshold, their mean return still
    tells agents apart.
    """
    agents = [name for name in AGENTS if any(r["agent"] == name for r in results)]
    table = Table("environment", "paper's FIGMN", *agents, title="episodes to solve")
    means = Table("environment", *agents, title=f"mean return of the first {WINDOW} episodes")
    times = Table(
        "environment", *agents, title="milliseconds of one processor a step, everything included"
    )
    for problem in PROBLEMS.values():
        cells, returns, steps = [], [], []
        for agent in agents:
            own = [r for r in results if r["agent"] == agent and r["problem"] == problem.name]
            cells.append(f"{summary(own)}, {len(own)} seeds" if own else "")
            early = [np.mean(r["returns"][:WINDOW]) for r in own]
            returns.append(f"{np.mean(early):.1f} ± {np.std(early):.1f}" if own else "")
            spent = sum(r["seconds"] for r in own) / max(1, sum(r["steps"] for r in own))
            steps.append(f"{1e3 * spent:.2f}" if own else "")
        if any(cells):
            table.add_row(problem.name, problem.paper, *cells)
            means.add_row(problem.name, *returns)
            times.add_row(problem.name, *steps)
    console = Console(width=160)
    console.print(table, means, times)
    for result in sorted(results, key=lambda r: (r["agent"], r["problem"], r["seed"])):
        print(result["agent"], result["problem"], result["seed"], "solved:", result["solved"])


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """Learning curves: the mean over the seeds of each episode's return."""
    from matplotlib.figure import Figure

    problems = [p for p in PROBLEMS.values() if any(r["problem"] == p.name for r in results)]
    figure = Figure(figsize=(4.0 * len(problems), 3.2), layout="constrained")
    all_axes = figure.subplots(1, len(problems), squeeze=False)[0]
    for axes, problem in zip(all_axes, problems, strict=True):
        for agent in AGENTS:
            curves = [
                r["returns"][:WINDOW]
                for r in results
                if r["agent"] == agent and r["problem"] == problem.name
            ]
            if curves:
                mean = np.mean(curves, axis=0)
                axes.plot(np.arange(1, len(mean) + 1), mean, label=f"{agent}, {len(curves)} seeds")
        axes.axhline(problem.threshold, color="gray", linestyle=":", linewidth=1)
        axes.set_title(problem.name)
        axes.set_xlabel("episode")
        axes.set_ylabel("mean return")
        axes.legend(fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run what was asked for, and show it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS))
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument(
        "--patience", type=int, default=1500, help="give up after so many episodes at the latest"
    )
    parser.add_argument("--folder", type=Path, default=Path("output/rl"))
    parser.add_argument("--figure", type=Path, default=Path("output/learning-curves.png"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", DeprecationWarning)  # Gymnasium's, of old environments
    jobs = [(a, p, s) for a in options.agents for p in options.problems for s in options.seeds]
    results, start = [], time.perf_counter()
    with ProcessPoolExecutor(options.processes) as pool:
        waiting = [pool.submit(run, *job, options.folder, options.patience) for job in jobs]
        for job, future in zip(jobs, waiting, strict=True):
            results.append(future.result())
            print(*job, "solved:", results[-1]["solved"], file=sys.stderr, flush=True)
    print_tables(results)
    draw(results, options.figure)
    print(f"{time.perf_counter() - start:.0f} s in all; learning curves in {options.figure}")


if __name__ == "__main__":
    main()
