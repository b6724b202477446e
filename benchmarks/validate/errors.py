"""Errors that a user of ``fastio validate`` can mend."""


class ValidateError(Exception):
    """The validation cannot be made; the message gives the reason and the allowed values."""
