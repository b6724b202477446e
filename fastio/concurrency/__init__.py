"""Native threads and hubs: which of them runs here, and how to wait, yield and hand work to a thread."""
