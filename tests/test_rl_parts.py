"""The agents' parts against direct formulas: regression, spline, model, plan, memory, values."""

from __future__ import annotations

import numpy as np
import pytest

from figmn.rl import loops
from figmn.rl.dynamics import MixtureDynamics
from figmn.rl.memory import Episode, Memory, Transitions
from figmn.rl.planning import Plan
from figmn.rl.spline import Spline, distance_basis
from figmn.rl.values import MixtureValues, Steps
from helpers import random_mixture
from rl_environments import value_of_distance


@pytest.mark.parametrize("n_known", [1, 3])
def test_the_mean_given_the_first_variables_is_that_of_the_mixture(n_known):
    mixture = random_mixture(4, 5, seed=0)
    rows = np.random.default_rng(1).normal(size=(30, n_known))
    mean, log_density = mixture.core.mean_given_first(rows)
    truth = mixture.infer(rows, known=list(range(n_known)))
    np.testing.assert_allclose(mean, truth.mean(), rtol=1e-6, atol=1e-9)
    marginal = mixture.marginalize(list(range(n_known)))
    np.testing.assert_allclose(log_density, marginal.log_density(rows), rtol=1e-6)


def test_in_one_dimension_the_spline_is_the_broken_line():
    random = np.random.default_rng(0)
    places, values = np.sort(random.uniform(size=12)), random.normal(size=12)
    coefficients = Spline(places[:, np.newaxis], smoothing=1e-12).coefficients(values)
    queries = np.linspace(places[0], places[-1], 50)
    found = distance_basis(queries[:, np.newaxis], places[:, np.newaxis]) @ coefficients
    np.testing.assert_allclose(found, np.interp(queries, places, values), atol=1e-6)


def test_the_spline_goes_through_its_points():
    random = np.random.default_rng(0)
    points, values = random.normal(size=(40, 4)), random.normal(size=40)
    coefficients = Spline(points, smoothing=1e-12).coefficients(values)
    np.testing.assert_allclose(distance_basis(points, points) @ coefficients, values, atol=1e-6)


def test_points_that_are_kept_are_apart_and_near_all_others():
    points = np.random.default_rng(0).normal(size=(300, 2))
    kept = loops.spread_out(points, 5, 0.5, 300)
    assert kept[:5].tolist() == [0, 1, 2, 3, 4]
    apart = np.linalg.norm(points[kept, np.newaxis] - points[kept], axis=2)
    later = apart[5:] + np.where(np.arange(5, len(kept))[:, np.newaxis] == range(len(kept)), 9, 0)
    assert later.min() >= 0.5
    assert np.linalg.norm(points[:, np.newaxis] - points[kept], axis=2).min(axis=1).max() < 0.5
    assert len(loops.spread_out(points, 0, 0.5, 7)) == 7


def driven_oscillator(n_steps: int, effect: float, seed: int = 0) -> Transitions:
    """Steps of a nonlinear spring with a small push: the push is a function of the state."""
    random = np.random.default_rng(seed)
    before = random.normal(size=(n_steps, 2))
    actions = (before[:, 0] * before[:, 1] > random.normal(size=n_steps)).astype(np.intp)
    pull = -0.3 * np.sin(2.0 * before[:, 0]) + effect * (2 * actions - 1)
    after = before + np.column_stack([0.1 * before[:, 1], pull])
    return Transitions(before, actions, -np.ones(n_steps), after, np.zeros(n_steps, dtype=bool))


def test_the_model_tells_a_small_effect_of_actions_from_the_drift():
    model = MixtureDynamics(2, delta=0.5, beta=0.1, noise=0.01)
    model.fit(driven_oscillator(1500, effect=0.02), np.random.default_rng(0))
    states = np.random.default_rng(1).normal(size=(200, 2))
    left, right = (model.predict(states, np.full(200, action))[0] for action in (0, 1))
    contrast = (right - left)[:, 1]
    assert abs(contrast.mean() / 0.04 - 1.0) < 0.15
    assert contrast.std() < 0.2 * 0.04


def test_the_model_repeats_a_step_that_was_taken():
    steps = driven_oscillator(300, effect=0.1)
    model = MixtureDynamics(2, delta=0.5, beta=0.1, noise=0.01)
    model.fit(steps, np.random.default_rng(0))
    after, rewards = model.predict(steps.before, steps.actions)
    np.testing.assert_allclose(after, steps.after, atol=1e-3)
    np.testing.assert_allclose(rewards, -1.0, atol=1e-3)


class Line:
    """Steps of length one to the left and to the right, each at the cost of one."""

    def predict(self, states, actions):
        return states + 2.0 * actions[:, np.newaxis] - 1.0, -np.ones(len(states))


@pytest.mark.parametrize("hold", [1, 3])
def test_a_plan_has_the_values_of_the_shortest_way(hold):
    points = np.arange(-10.0, 11.0)[:, np.newaxis]
    terminal = np.abs(points[:, 0]) == 10.0
    plan = Plan(Line(), 2, hold, 0.95, points, terminal, visited=points)
    values = plan.solve()
    truth = value_of_distance(10 - np.abs(points[:, 0]), 0.95)
    np.testing.assert_allclose(values, truth, atol=0.02)
    left, right = plan.action_values(np.array([[4.0]]))[0]
    assert right == pytest.approx(value_of_distance(6, 0.95), abs=0.02)
    assert left < right


def test_an_exploring_plan_heads_for_what_was_not_visited():
    points = np.arange(0.0, 5.0)[:, np.newaxis]
    nothing_ends = np.zeros(5, dtype=bool)
    plan = Plan(Line(), 2, 2, 0.95, points, nothing_ends, visited=points[:4], exploring=True)
    plan.solve()
    left, right = plan.action_values(np.array([[3.0]]))[0]
    assert right > left


def test_a_memory_forgets_whole_episodes_oldest_first():
    memory = Memory(5)
    for number, length in enumerate([2, 3, 2]):
        memory.start(np.array([10.0 * number]))
        for step in range(length):
            ended = step == length - 1 and number == 2
            memory.step(0, 1.0, np.array([10.0 * number + step + 1.0]), ended)
        memory.finish()
    steps = memory.transitions()
    assert steps.before[:, 0].tolist() == [10.0, 11.0, 12.0, 20.0, 21.0]
    assert steps.after[:, 0].tolist() == [11.0, 12.0, 13.0, 21.0, 22.0]
    assert steps.terminal.tolist() == [False, False, False, False, True]
    assert len(memory) == 5
    assert memory.starts()[:, 0].tolist() == [10.0, 20.0]


def test_a_memory_keeps_the_ends_of_forgotten_episodes():
    memory = Memory(3)
    for number in range(4):
        memory.start(np.array([0.0]))
        for _ in range(3):
            memory.step(0, 1.0, np.array([float(number)]), number < 2)
        memory.finish()
    assert memory.ends()[:, 0].tolist() == [0.0, 1.0]
    restored = Memory(3)
    restored.restore(memory.arrays(), n_variables=1, n_actions=1)
    restored.start(np.array([0.0]))
    assert restored.ends()[:, 0].tolist() == [0.0, 1.0]


# -- Values --------------------------------------------------------------------


def _random_episode(random, length, ended):
    states = random.normal(size=(length + 1, 2))
    return Episode(states, random.integers(2, size=length), random.normal(size=length), ended)


def test_steps_of_episodes_know_where_they_begin_and_which_end():
    random = np.random.default_rng(0)
    episodes = [_random_episode(random, 3, True), _random_episode(random, 2, False)]
    steps = Steps.of(episodes)
    assert steps.first.tolist() == [0, 1, 2, 4, 5]
    assert steps.terminal.tolist() == [False, False, True, False, False]
    np.testing.assert_array_equal(steps.states[steps.first[3:] + 1], episodes[1].states[1:])


def test_values_fitted_in_sweeps_are_those_of_the_mixtures_made_of_them():
    random = np.random.default_rng(1)
    steps = Steps.of([_random_episode(random, 2000, False)])
    values = MixtureValues(2, 2, low=-9.0, optimistic=9.0, doubt=0.01, delta=0.3, beta=0.05)
    before = steps.states[steps.first]
    values.place(steps, before[:, 0], random)
    wanted = np.where(steps.actions == 0, before[:, 0] - before[:, 1], 2.0)
    values.learn(wanted)
    expected = values.expected()
    values.finish(wanted)
    means, hopeful = values.predict(steps.states)
    np.testing.assert_allclose(hopeful, expected, atol=0.01)  # small shares are left out
    near = np.abs(steps.states).max(axis=1) < 1.0
    truth = steps.states[:, 0] - steps.states[:, 1]
    np.testing.assert_allclose(means[near, 0], truth[near], atol=0.1)
    far = values.predict(np.array([[50.0, 50.0]]))[1]
    np.testing.assert_allclose(far, 9.0)
