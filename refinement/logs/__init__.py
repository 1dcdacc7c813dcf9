"""What the lines of another system's log mean, told as recorded Python functions, and their Kleene replay.

`record` has the words that an event's function is written in, `replay` takes recorded events over cells that are known
or not, `order` puts the lines of several processes into an order that their messages allow, `audit` makes verdicts and
a report of log files. Nothing here knows a system or a protocol.
"""
