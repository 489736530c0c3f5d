"""The components of a mixture: how they are held, learn and are evaluated.

====================  =======================================================
``base``              :class:`Components`, all that a mixture needs of them
``engine``            the one place that decides between the following two
``plain``             few variables: whole factors, one after the other
``pace``              how the latter learn: row by row, or by strides
``lazy``              many variables: low rank while young, matrix products
``blocks``            how the latter learn, a block of rows at a time
``whole``             how one of them learns that is alone, in half the time
``layout``            the arrays of lazy components in a file
``pending``           rows that have not yet been folded into a matrix
``state``             the arrays of plain components: make, grow, change
``density``           their distances and densities
``factors``           covariances, precisions and reordering, from factors
``scale``             the scale of columns
====================  =======================================================
"""
