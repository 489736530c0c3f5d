"""The mixture: one class that learns, and answers questions of what it has learnt.

====================  =======================================================
``mixture``           :class:`Mixture`: learn, density, condition, sample ...
``choices``           the settings, checked once
``learner``           the state: warm-up, start, stream, looks back
``beginning``         the first rows: held back, then learnt or fitted
``start``             what a mixture without settings starts from
``sample``            rows that stand for the stream
``conditional``       :class:`Conditional`: what known values say of others
``packing``           everything learnt as named arrays for a file
``tail``              how strange a row is
``warmup``            rows held back at first
``validation``        input checks with a cause and a remedy
====================  =======================================================
"""

from figmn.mixture.conditional import Conditional
from figmn.mixture.mixture import Mixture

__all__ = ["Conditional", "Mixture"]
