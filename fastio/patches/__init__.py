"""One folder a library, one module per patch; each declares ``PATCH``. See ``fastio.patching.registry``.

The folder says in ``REQUIRES`` which releases its patches are for, as a requirement of PEP 508. All patches in it need
that, and all targets in the library, whichever patch they belong to.
"""
