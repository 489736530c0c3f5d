"""The mixture: one class that learns, and answers questions of what it has learnt.

====================  =======================================================
``mixture``           :class:`Mixture`: learn, density, condition, sample ...
``tail``              how strange a row is
====================  =======================================================
"""

from figmn.engines.conditional import Conditional
from figmn.mixture.mixture import Mixture

__all__ = ["Conditional", "Mixture"]
