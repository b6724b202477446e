"""Native threads and hubs: which of them runs here, and how one waits, gives way and hands work to a thread."""
