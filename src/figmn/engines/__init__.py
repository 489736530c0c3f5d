"""Engines: how components are held, and how rows change them.

====================  =======================================================
``interface``         :class:`Components` and :class:`Engine`: what a mixture needs
``choice``            the one place that decides between rowwise, strides and blocks
``rowwise``           row by row, in a compiled loop
``strides``           many rows at a time, where the result is certainly the same
``blocks``            matrix products and low-rank components, for many variables
``regression``        how wanted variables follow from known ones
``conditional``       the distributions that answers consist of
``responsibilities``  distances and densities of rows, and posteriors from them
``factors``           covariances, precisions and reordering, from factors
``scale``             the scale of columns
====================  =======================================================

Every engine offers ``advance(start) -> (stop, event)`` on a chunk of rows. It hands back
when a row starts a component, or when components may have to be removed; the driver of the
stream (:mod:`figmn.stream.driver`) does that, and lets it advance again.
"""
