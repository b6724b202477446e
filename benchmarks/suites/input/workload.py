"""Writing a child's input: ``communicate(input)``, and ``processutils.execute(process_input=...)`` on top of it.

The reader is ``dd``, which reads at the speed of C and says how many bytes it got. That they are the right ones is
checked in a second exchange, which is not measured, with ``sha256sum``.

Parameters:

``size``
    bytes of input
``stock_green_size``
    the most of it for stock eventlet, which writes 512 bytes at a time and takes a quarter of a minute for 200 MiB;
    rates are comparable, times are not
``through``
    ``"popen"``, or ``"oslo"``. Three pipes in either case.
``settings``
    of fastio
"""

from benchmarks.harness.modes import variants
from benchmarks.suites.input.writing import reference, run

VARIANTS = variants(run, {"reference-write": reference})
