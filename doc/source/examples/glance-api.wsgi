import fastio.auto  # noqa: F401 - before glance is loaded
from glance.wsgi.api import application  # noqa: F401
