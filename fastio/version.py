"""The version of fastio, here so that nothing has to import the package for it."""

VERSION = "0.1.0"
