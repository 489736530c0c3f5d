"""The one place that decides how components are held, and how they learn rows."""

from __future__ import annotations

from typing import Final

import numpy as np

from figmn._typing import AnyArray, Array
from figmn.engines.blocks import lowrank_arrays
from figmn.engines.blocks.block_engine import BlockEngine
from figmn.engines.blocks.lowrank_components import LowRankComponents
from figmn.engines.interface import Components, Engine
from figmn.engines.rowwise import dense_components, dense_state
from figmn.engines.rowwise.dense_components import DenseComponents
from figmn.engines.rowwise.row_engine import RowEngine
from figmn.engines.strides.stride_engine import StrideEngine
from figmn.kernels.rule import Rule

LEAST_BLOCK_FEATURES: Final = 256
"""From this many variables on, blocks of rows are faster than loops over them."""


def engine_for(components: Components, rows: Array, weights: Array, rule: Rule) -> Engine:
    """The engine that learns a chunk of rows fastest.

    Parameters
    ----------
    components : Components
    rows : array of shape (N, D)
        NaN marks a missing entry.
    weights : array of shape (N,)
    rule : Rule
    """
    if isinstance(components, LowRankComponents):
        return BlockEngine(components, rows, weights, rule)
    assert isinstance(components, DenseComponents)
    kind = StrideEngine if StrideEngine.suits(len(rows), rule) else RowEngine
    return kind(components, rows, weights, rule)


def no_components(n_features: int, update: str) -> Components:
    """Components of a mixture that has learnt nothing."""
    if _takes_blocks(n_features, update):
        return LowRankComponents(n_features)
    return DenseComponents(dense_state.empty(n_features, 1))


def suited(components: Components, update: str) -> Components:
    """The same components, held as suits their number of variables and the update rule."""
    blocks = _takes_blocks(components.n_features, update)
    if blocks == isinstance(components, LowRankComponents):
        return components
    state = dense_state.selected(components, np.arange(components.n_components))
    return LowRankComponents.of(state) if blocks else DenseComponents(state)


def _takes_blocks(n_features: int, update: str) -> bool:
    # The rule printed in the paper takes away from a covariance at first, which
    # rows that join it cannot express.
    return n_features >= LEAST_BLOCK_FEATURES and update == "exact"


def pack(components: Components) -> dict[str, AnyArray]:
    """Named arrays that hold everything of components, for a file."""
    if isinstance(components, LowRankComponents):
        return lowrank_arrays.pack(components)
    assert isinstance(components, DenseComponents)
    return dense_components.pack(components)


def unpack(arrays: dict[str, AnyArray]) -> Components:
    """Inverse of :func:`pack`; raises ValueError on what learning cannot have made."""
    if "pending" in arrays:
        return lowrank_arrays.unpack(arrays)
    return dense_components.unpack(arrays)
