"""The I/O core: pipes, buffers, and the exchange with a child. It knows nothing of the patched libraries."""
