"""Patches of oslo.concurrency."""
