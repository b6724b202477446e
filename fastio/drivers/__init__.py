"""Drivers that fastio maintains for glance_store, which loads them by their entry points."""
