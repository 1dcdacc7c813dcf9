"""An audit that goes on: what is judged today is kept in a directory, and tomorrow's files of the same runs are judged
from there (`vsr audit --state DIR`), with the report of one audit over all files.

`directory` is what is kept and how it changes as a whole or not at all, `inputs` which files were taken, `runs` how a
run goes on, `kept` what is kept of it and by whom (`in_files`: in the directory; `in_value`: as bytes, for a row of a
table), `audit` the whole.
"""

from viewproof.refinement.going_on.audit import audit
from viewproof.refinement.going_on.directory import StateError

__all__ = ["StateError", "audit"]
