"""Native threads and hubs: which of them runs here, and how one waits, yields and hands work to a thread."""
