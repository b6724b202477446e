# The master reads this before it loads glance and forks its workers.
import fastio.auto  # noqa: F401

bind = "127.0.0.1:9292"
worker_class = "gthread"
workers = 2
threads = 24
# Seconds that requests under way may take after SIGTERM or SIGHUP; uploads and downloads are cut off then.
graceful_timeout = 600
