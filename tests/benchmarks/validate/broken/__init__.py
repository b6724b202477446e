"""Candidates that are broken on purpose, a module for each project: faults that a reviewer could miss."""
