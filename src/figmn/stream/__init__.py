"""The stream: what happens to a mixture as rows come in.

====================  =======================================================
``driver``            the algorithm: advance, create, prune
``settings_to_rule``  what the settings mean for it
``phases``            the phases of a mixture's life, and which one comes first
``fit_warm_up``       the first rows of a mixture without settings, fitted by EM
``scale_warm_up``     the first rows of a mixture with settings, which show its scale
``warm_up``           rows held back; also used by the class-conditional classifier
``streaming``         components that rows update, and reviews of them
``refit``             a fit that is made while rows come in
``row_buffer``        rows that are held back, with room to grow
``start``             what a mixture without settings starts from, by EM
``retained_sample``   rows that stand for all of the stream
``core``              :class:`MixtureCore`: the mixture without validation
``packing``           everything learnt as named arrays for a file
====================  =======================================================
"""

from figmn.stream.core import MixtureCore

__all__ = ["MixtureCore"]
