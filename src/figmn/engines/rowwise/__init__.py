"""Row by row: the sequential algorithm as it is written, compiled.

**When.** Always with the update rule as printed in the paper. Else below 256 variables: in
chunks of fewer than 500 rows, with a ``half_life``, and wherever strides do not pay. Other
engines come back to it for rows that they cannot learn.

**Cost.** O(K D^2) a row, less for components that a row cannot concern: their distance is
bounded from below by the first few variables. Two D x D matrices a component.

====================  =======================================================
``row_engine``        :class:`RowEngine`
``row_kernel``        the loop over rows, and the update of one component
``dense_components``  :class:`DenseComponents`: questions, and arrays for files
``dense_state``       the arrays themselves: make, grow, merge, widen
====================  =======================================================
"""
