"""What a user of ``fastio validate`` can do something about."""


class ValidateError(Exception):
    """The validation cannot be made as it was asked for; the message says why and what is allowed."""
