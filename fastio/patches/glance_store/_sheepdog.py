"""What the patches of glance_store's own sheepdog driver share. Release 1.1.0 dropped it."""

from __future__ import annotations

MODULE = "glance_store._drivers.sheepdog"

#: From the first release whose driver runs on Python 3.7 and later, where a generator may not raise StopIteration.
#: The end is that of the other drivers' patches: where the driver is not there these wait for it, which is no problem.
REQUIRES = "glance_store >= 0.28, < 6"
