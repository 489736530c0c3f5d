"""The mixture: one class that owns the learnt state and answers questions of it.

====================  =======================================================
``mixture``           :class:`Mixture`: learn, density, condition, sample ...
``choices``           the settings, checked once
``density``           distances and densities of rows
``conditional``       :class:`Conditional`: what known values say of others
``factors``           covariances, precisions and reordering, from the factors
``state``             making, growing and changing the arrays of the state
``packing``           the state as named arrays for a file
``scale``             the scale of columns
``tail``              how strange a row is
``warmup``            rows held back until they have shown that scale
``validation``        input checks with a cause and a remedy
====================  =======================================================
"""

from figmn.mixture.conditional import Conditional
from figmn.mixture.mixture import Mixture

__all__ = ["Conditional", "Mixture"]
