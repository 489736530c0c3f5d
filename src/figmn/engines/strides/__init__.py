"""Strides: many rows at a time, where the result is certainly the same, to rounding.

**When.** Fewer than 256 variables, in chunks of 500 rows or more, without a ``half_life`` and
with the exact update, where most rows belong to one component each. Elsewhere, and between
strides, rows are learnt one by one (:mod:`figmn.engines.rowwise`).

**Cost.** One matrix update a component and stride, instead of one a row: O(D^2) a row, by
loops over many rows side by side.

====================  =======================================================
``stride_engine``     :class:`StrideEngine`: how long a stride is, and when it pays
``stride_kernel``     one stride: group rows, look ahead, learn
``certainty``         which rows certainly belong to one component and change no other
``pooled_update``     one component learns many rows by one update
====================  =======================================================
"""
