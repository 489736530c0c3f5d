"""Learn to act from a few episodes, and record what was learnt as an animation.

python examples/acting.py --environment Acrobot-v1 --episodes 10 --output acrobot.gif
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gymnasium
import numpy as np
from PIL import Image

from figmn.rl import Agent, PlanningAgent


def record(agent: Agent, env: gymnasium.Env, seed: int, size: int) -> list[Image.Image]:
    """Pictures of one episode without exploration."""
    observation, _ = env.reset(seed=seed)
    pictures, over = [], False
    while not over:
        pictures.append(Image.fromarray(np.asarray(env.render())))
        observation, _, ended, cut_off, _ = env.step(agent.act(observation))
        over = ended or cut_off
    pictures.append(Image.fromarray(np.asarray(env.render())))
    for picture in pictures:
        picture.thumbnail((size, size))
    # A palette of few colours is what keeps the file small.
    return [picture.quantize(16) for picture in pictures]


def main() -> None:
    """Learn, record, save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", default="Acrobot-v1")
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--size", type=int, default=200, help="pixels of the longer side")
    parser.add_argument("--output", type=Path, default=Path("output/policy.gif"))
    options = parser.parse_args()
    agent = PlanningAgent(seed=options.seed)
    history = agent.learn(gymnasium.make(options.environment), options.episodes)
    print("returns:", *history.returns)
    env = gymnasium.make(options.environment, render_mode="rgb_array")
    first, *others = record(agent, env, options.seed + 1, options.size)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    first.save(options.output, save_all=True, append_images=others, duration=60, loop=0)
    print(f"{len(others)} steps, in {options.output}")


if __name__ == "__main__":
    main()
