"""Logs whose lines carry neither a number nor a clock: files that are read together, and put into an order.

`order` puts the records of several processes into an order that their messages allow, `source` has what a system's
reader makes of lines, `judging` judges the runs. Nothing here knows a system or a protocol.
"""
