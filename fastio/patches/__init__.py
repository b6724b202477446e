"""One folder a library, one module per patch; each declares ``PATCH``. See ``fastio.patching.registry``."""
