"""One module per patch; each declares ``PATCH``. See ``fastio.registry``."""
