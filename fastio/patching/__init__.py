"""Patches: their definition, and how they are put in place, looked at and taken back."""
