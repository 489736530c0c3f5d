r"""Compiled functions on contiguous arrays that engines share: no classes, no validation.

====================  =======================================================
``compiler``          the one place for Numba's flags, and numeric limits
``rule``              the learning rule: novelty, responsibilities, fading, spuriousness
``factor``            arithmetic on one component's precision factor
``missing``           what the known entries of a row say about the others
``evaluation``        distances and joint log densities of rows
``leading``           wanted variables given known ones that come first, row by row
``tiles``             the same for many rows, side by side
``quantiles``         quantiles of mixtures in one variable
``blas``              matrix products in place
``moments``           running column means and standard deviations
``inspection``        whether input can be learnt
``sampling``          which rows of a stream to retain
====================  =======================================================

Kernels that belong to one engine are in its folder, :mod:`figmn.engines`.

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

# It compiles on import, which takes half as long again deep within imports of other modules.
from figmn.kernels import blas as blas
