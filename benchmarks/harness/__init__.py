"""Shared by all suites: the engine and its worker, results, and their statistics, tables and plots."""
