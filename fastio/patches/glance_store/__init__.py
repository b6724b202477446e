"""Patches of the drivers of glance_store."""
