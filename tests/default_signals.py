"""The first lines of another process's code: signals do there what they do in a terminal.

Whoever started the tests may have them ignore some, as `nohup` and `&` do, and a child inherits that.
"""

DEFAULT_SIGNALS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
for one in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(one, signal.SIG_DFL)
"""
