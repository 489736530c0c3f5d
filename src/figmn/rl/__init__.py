"""Agents that learn to act, for Gymnasium environments: the extra ``rl``.

=======================  ==================================================
:class:`PlanningAgent`   learns how the environment works, and plans on it
:class:`QLearningAgent`  learns values of actions alone, as in the paper
:class:`History`         what came of each episode
=======================  ==================================================

Observations must be a box of numbers and actions a discrete set.
"""

from figmn.rl.agent import Agent
from figmn.rl.history import History
from figmn.rl.planning_agent import PlanningAgent
from figmn.rl.q_learning import QLearningAgent

__all__ = ["Agent", "History", "PlanningAgent", "QLearningAgent"]
