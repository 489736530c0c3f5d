"""Agents on environments with known optimal values; seeds; files; environments they refuse."""

from __future__ import annotations

import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import figmn
from figmn.rl import History, PlanningAgent, QLearningAgent
from figmn.rl.values import Steps
from rl_environments import Chain, Grid, Precipice, value_of_distance

AGENTS = [PlanningAgent, QLearningAgent]
DISCOUNT = 0.9
QUICK = {PlanningAgent: {"points": 60}, QLearningAgent: {}}


def greedy_path(agent, env):
    """States of an episode without exploration, of shape (T + 1, D)."""
    observation, _ = env.reset()
    states, over = [observation], False
    while not over:
        observation, _, ended, cut_off, _ = env.step(agent.act(observation))
        states.append(observation)
        over = ended or cut_off
    return np.array(states)


@pytest.mark.parametrize("agent_class", AGENTS)
def test_the_chain_is_walked_straight(agent_class):
    agent = agent_class(discount=DISCOUNT, seed=1)
    agent.learn(Chain(), episodes=30)
    assert len(greedy_path(agent, Chain())) == 5 + 1


@pytest.mark.parametrize(("agent_class", "episodes"), [(PlanningAgent, 15), (QLearningAgent, 150)])
def test_the_grid_is_crossed_by_a_shortest_path(agent_class, episodes):
    agent = agent_class(discount=DISCOUNT, seed=1)
    agent.learn(Grid(), episodes)
    assert len(greedy_path(agent, Grid())) == 6 + 1


def test_planned_values_on_the_chain_are_the_optimal_ones():
    agent = PlanningAgent(discount=DISCOUNT, caution=0.0, seed=1)
    agent.learn(Chain(), episodes=10)
    places = np.arange(5)
    best = agent.values(places[:, np.newaxis]).max(axis=1)
    np.testing.assert_allclose(best, value_of_distance(5 - places, DISCOUNT), rtol=0.05)


def test_planned_values_on_the_grid_are_the_optimal_ones():
    agent = PlanningAgent(discount=DISCOUNT, caution=0.0, seed=1)
    agent.learn(Grid(), episodes=15)
    path = greedy_path(agent, Grid())[:-1]
    steps_left = np.abs(path - 3).sum(axis=1)
    best = agent.values(path).max(axis=1)
    np.testing.assert_allclose(best, value_of_distance(steps_left, DISCOUNT), rtol=0.05)


def test_learnt_values_on_the_chain_come_near_the_optimal_ones():
    agent = QLearningAgent(discount=DISCOUNT, seed=1)
    agent.learn(Chain(), episodes=150)
    places = np.arange(5)
    best = agent.values(places[:, np.newaxis])[:, 1]
    np.testing.assert_allclose(best, value_of_distance(5 - places, DISCOUNT), atol=0.6)


def test_what_ends_an_episode_is_not_forgotten_while_none_does():
    """On a chain that must not be left, good episodes fill the memory with no end in it."""
    agent = PlanningAgent(discount=DISCOUNT, points=60, memory=60, seed=1)
    agent.learn(Precipice(), episodes=12)
    assert not any(episode.ended for episode in agent._memory.episodes)
    assert not agent._plan.exploring
    assert agent._plan.terminal.any()
    assert len(greedy_path(agent, Precipice())) == Precipice().time_limit + 1


@pytest.mark.parametrize("agent_class", AGENTS)
def test_a_time_limit_is_not_an_end(agent_class):
    """Where nothing ever ends, every step costs one for ever: 1 / (1 - discount)."""
    agent = agent_class(discount=DISCOUNT, seed=0)
    agent.learn(Chain(n_states=200, time_limit=30), episodes=5)
    if agent_class is PlanningAgent:
        assert agent._plan.exploring
    else:
        steps = Steps.of([agent._memory.episodes[-1]])
        np.testing.assert_allclose(agent._targets(steps, np.full((31, 2), -10.0)), -10.0)


@pytest.mark.parametrize("agent_class", AGENTS)
def test_a_seed_gives_the_same_agent(agent_class):
    def returns(seed):
        return (
            agent_class(seed=seed, **QUICK[agent_class])
            .learn(gymnasium.make("CartPole-v1"), 6)
            .returns
        )

    assert returns(3) == returns(3)
    assert returns(3) != returns(4)


@pytest.mark.parametrize("agent_class", AGENTS)
def test_learning_in_parts_is_learning_at_once(agent_class):
    parts, whole = (agent_class(seed=5, **QUICK[agent_class]) for _ in range(2))
    env = gymnasium.make("CartPole-v1")
    for episodes in (1, 0, 4):
        parts.learn(env, episodes)
    assert parts.history == whole.learn(gymnasium.make("CartPole-v1"), 5)


@pytest.mark.parametrize("agent_class", AGENTS)
def test_a_loaded_agent_goes_on_as_the_saved_one(agent_class, tmp_path):
    agent = agent_class(seed=2, delta=0.6, **QUICK[agent_class])
    agent.learn(gymnasium.make("CartPole-v1"), 4)
    agent.save(tmp_path / "agent")
    loaded = figmn.load(tmp_path / "agent")
    assert loaded.delta == 0.6
    assert loaded.history == agent.history
    states = np.random.default_rng(0).normal(size=(20, 4)) * 0.1
    assert np.array_equal(loaded.values(states), agent.values(states))
    histories = []
    for each in (agent, loaded):
        env = gymnasium.make("CartPole-v1")
        env.reset(seed=11)
        histories.append(each.learn(env, 3))
    assert histories[0] == histories[1]


@pytest.mark.parametrize("agent_class", AGENTS)
def test_a_file_with_contents_that_do_not_fit_is_refused(agent_class, tmp_path, monkeypatch):
    agent = agent_class(seed=2)
    agent.learn(Chain(), 3)
    packed = agent.to_state

    def forged():
        settings, arrays = packed()
        return settings, {**arrays, "memory.actions": arrays["memory.actions"] + 7}

    monkeypatch.setattr(agent, "to_state", forged)
    agent.save(tmp_path / "agent")
    with pytest.raises(figmn.ModelFileError, match="do not fit"):
        figmn.load(tmp_path / "agent")


# -- What is refused -----------------------------------------------------------


class Declared(gymnasium.Env):
    def __init__(self, observations, actions) -> None:
        self.observation_space, self.action_space = observations, actions


BOX = spaces.Box(-1.0, 1.0, (2,))


@pytest.mark.parametrize("agent_class", AGENTS)
def test_continuous_actions_are_refused(agent_class):
    with pytest.raises(TypeError, match="Actions must be a discrete set"):
        agent_class().learn(Declared(BOX, BOX), 1)


@pytest.mark.parametrize("agent_class", AGENTS)
@pytest.mark.parametrize("observations", [spaces.Dict({"a": BOX}), spaces.Discrete(3)])
def test_observations_that_are_no_box_are_refused(agent_class, observations):
    with pytest.raises(TypeError, match="Observations must be a box"):
        agent_class().learn(Declared(observations, spaces.Discrete(2)), 1)


def test_another_environment_is_refused():
    agent = QLearningAgent(seed=0)
    agent.learn(Chain(), 1)
    with pytest.raises(ValueError, match="make a new agent"):
        agent.learn(Grid(), 1)


@pytest.mark.parametrize("agent_class", AGENTS)
def test_an_agent_that_has_not_learnt_says_so(agent_class, tmp_path):
    with pytest.raises(RuntimeError, match="call learn first"):
        agent_class().act([0.0])
    with pytest.raises(RuntimeError, match="call learn first"):
        agent_class().save(tmp_path / "agent")


@pytest.mark.parametrize("observation", [[np.nan], [0.0, 1.0]])
def test_odd_observations_are_refused(observation):
    agent = QLearningAgent(seed=0)
    agent.learn(Chain(), 1)
    with pytest.raises(ValueError, match="The observation"):
        agent.act(observation)


def test_without_gymnasium_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match=r"pip install figmn\[rl\]"):
        QLearningAgent().learn(Chain(), 1)


@pytest.mark.parametrize(
    ("agent_class", "setting"),
    [
        (PlanningAgent, {"hold": 0}),
        (PlanningAgent, {"noise": -1.0}),
        (PlanningAgent, {"delta": 0.0}),
        (QLearningAgent, {"gap": 1.5}),
        (QLearningAgent, {"beta": 2.0}),
        (QLearningAgent, {"seed": -1}),
        (PlanningAgent, {"discount": 1.5}),
    ],
)
def test_settings_out_of_range_are_refused_at_once(agent_class, setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        agent_class(**setting)


# -- Histories -----------------------------------------------------------------


def test_episodes_to_solve_counts_those_before_the_window():
    history = History()
    for total in [0.0] * 7 + [10.0] * 100 + [0.0] * 5:
        history.add(total, 1)
    assert history.episodes_to_solve(10.0) == 7
    assert history.episodes_to_solve(9.5) == 2  # the window may hold five bad ones
    assert history.episodes_to_solve(10.1) is None
    assert History([10.0] * 99, [1] * 99).episodes_to_solve(1.0) is None


def test_the_learning_curve_shows_every_episode_and_the_mean():
    history = History([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1])
    points, mean = history.plot(window=2, label="agent").lines
    assert points.get_ydata().tolist() == [1.0, 2.0, 3.0, 4.0]
    np.testing.assert_allclose(mean.get_ydata(), [1.5, 2.5, 3.5])


def test_learning_stops_when_told():
    history = QLearningAgent(seed=0).learn(Chain(), 50, until=lambda history: len(history) == 3)
    assert len(history) == 3
