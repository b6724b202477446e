"""For a service whose database is sqlite, and that many clients write to: each transaction waits for its turn.

oslo.db begins a transaction with a bare BEGIN, and sqlite refuses at once, with "database is locked", to let one that
has read write after another has written. The databases that services run on in earnest have them wait.
"""

import wrapt


def _patient(_module: object) -> None:
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    @event.listens_for(Engine, "before_cursor_execute", retval=True)
    def begin(_connection, _cursor, statement, parameters, _context, _executemany):
        return ("BEGIN IMMEDIATE" if statement == "BEGIN" else statement), parameters


wrapt.register_post_import_hook(_patient, "oslo_db.sqlalchemy.engines")
