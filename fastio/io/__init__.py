"""The I/O core: pipes, buffers, the exchange with a child. It knows nothing of who is patched."""
