"""Blocks: the sequential algorithm in matrix products, for many variables.

**When.** 256 variables or more, with the exact update rule.

**Cost.** A block of 64 rows is measured against all components in matrix products; then
O(B^2) a row and component in the span of the block; then one matrix product for each
component that has gained. A young component is low rank: it holds the rows that it has
learnt instead of a D x D matrix, until these are about D / 2. A component that is alone
is held as a precision matrix while it learns, in half the time.

====================  =======================================================
``block_engine``      :class:`BlockEngine`: from block to block
``block``             one block in progress
``block_kernel``      learning in the span of a block's rows
``lowrank_components``  :class:`LowRankComponents`: a base and pending rows; questions
``lowrank_questions`` what may be asked of them
``lowrank_kernel``    matrix products on one such component
``root_order``        triangular roots with their variables in another order
``lowrank_arrays``    their arrays in files
``pending``           rows that a component's base has not taken in yet
``single``            the only component of a mixture, as a precision matrix
====================  =======================================================
"""
