"""Patches of python-glanceclient."""
