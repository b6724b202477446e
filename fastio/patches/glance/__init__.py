"""Patches of glance-api's own data path."""
