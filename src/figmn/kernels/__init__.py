r"""Free functions on contiguous arrays, nearly all compiled: no classes, no validation.

====================  =======================================================
``compiler``          the one place for Numba's flags, and numeric limits
``factor``            arithmetic on one component's precision factor
``missing``           what the known entries of a row say about the others
``evaluation``        distances and joint log densities of rows
``learning``          the sequential learning loop, row by row
``strides``           many rows at a time: most together, those in doubt in their turn
``doubts``            which rows are beyond doubt
``together``          one component learns many rows by one update
``blas``              matrix products in place
``lowrank``           one component with rows pending, in matrix products
``whole``             one component alone, with its whole precision
``blocks``            learning a block of rows in the span of those rows
``moments``           running column means and standard deviations
``inspection``        whether input can be learnt
``sampling``          which rows of a stream to keep
``opinions``          classes along a stream, by several ways to predict them
====================  =======================================================

**The representation.** A component's precision matrix is held as

.. math:: \Lambda = T^\top \operatorname{diag}(v)^{-1} T

with ``T`` unit lower triangular (the *whitener*) and ``v > 0``. Row ``r`` of
``T`` regresses variable ``r`` on the variables before it, and ``v[r]`` is the
variance of what that regression leaves over. So ``z = T (x - mean)`` are
independent residuals, the squared Mahalanobis distance is ``sum(z**2 / v)``
and the log-determinant of the covariance is ``sum(log(v))``.

A rank-one update of the covariance is a rank-one update of this factor at the
same O(D^2) cost as updating the precision matrix itself, and in it every
``v[r]`` comes out of sums of positive terms. The model therefore stays
positive definite whatever the input, which no recursion on the entries of
the precision matrix can promise.
"""
