"""Behaviours of mutants of repair that lie too deep for a search; `test_walks` says what each breaks."""

CUT_BY_DISCARD = """
on_request r=0 c=1 s=1
on_prepare r=1 o=1
start_view_change r=1 v=1
start_view_change r=2 v=1
do_view_change r=1
do_view_change r=2
merge r=1 b=1
nack r=2 o=1 w=0
discard r=1 o=1
start_view_change r=2 v=2
start_view_change r=1 v=2
do_view_change r=2
do_view_change r=1
merge r=2 b=2
start_view r=2
on_start_view r=1 v=2 n=0
on_request r=2 c=1 s=1
on_request r=2 c=2 s=1
on_prepare r=1 o=2
start_view_change r=1 v=3
start_view_change r=2 v=3
do_view_change r=1
"""
"""Replica 1 discards op 1, keeps the header of view 0 above its log, takes op 2 of view 2, and offers both."""
CUT_BY_MERGE = """
on_request r=0 c=1 s=1
start_view_change r=1 v=1
start_view_change r=2 v=1
do_view_change r=1
do_view_change r=2
merge r=1 b=1
start_view r=1
on_start_view r=2 v=1 n=0
start_view_change r=2 v=2
start_view_change r=2 v=3
start_view_change r=0 v=3
do_view_change r=2
do_view_change r=0
merge r=0 b=2
start_view_change r=1 v=2
start_view_change r=1 v=3
start_view_change r=1 v=4
start_view_change r=2 v=4
do_view_change r=1
do_view_change r=2
merge r=1 b=1
start_view r=1
on_start_view r=0 v=4 n=0
on_request r=1 c=1 s=1
on_request r=1 c=2 s=1
on_prepare r=0 o=2
start_view_change r=0 v=5
start_view_change r=2 v=5
do_view_change r=0
"""
"""Replica 0 merges the empty log of view 1, keeps the header of view 0 above it, takes op 2 of view 4, offers both."""
NACK_OF_A_LATER_PREPARE = """
on_request r=0 c=1 s=1
on_request r=0 c=2 s=1
on_prepare r=1 o=2
append r=0 o=2
append r=1 o=2
start_view_change r=1 v=1
start_view_change r=2 v=1
do_view_change r=1
do_view_change r=2
merge r=1 b=1
discard r=1 o=1
start_view r=1
on_request r=1 c=1 s=1
on_request r=1 c=2 s=1
start_view_change r=1 v=2
start_view_change r=2 v=2
start_view_change r=0 v=2
do_view_change r=1
do_view_change r=2
do_view_change r=0
nack r=0 o=2 w=1
merge r=2 b=0
discard r=2 o=2
"""
"""Replica 0 acknowledged the prepare of view 0 at op 2, and nacks that of view 1, which began without op 1."""
NACK_WHERE_ALL_ACKNOWLEDGED = """
on_request r=0 c=1 s=1
on_request r=0 c=2 s=1
on_prepare r=1 o=2
on_prepare r=2 o=1
on_prepare r=2 o=2
append r=0 o=2
append r=1 o=2
append r=2 o=2
start_view_change r=1 v=1
do_view_change r=1
merge r=1 b=1
discard r=1 o=1
start_view r=1
on_request r=1 c=1 s=1
on_request r=1 c=2 s=1
rot r=2 o=2
start_view_change r=1 v=2
start_view_change r=2 v=2
start_view_change r=0 v=2
do_view_change r=1
do_view_change r=2
nack r=0 o=2 w=1
merge r=2 b=2
discard r=2 o=2
"""
"""The same, where a view starts with one replica: all three acknowledged what is discarded, and replica 2 lost it."""
LONGEST_OF_AN_OLDER_VIEW = """
on_request r=0 c=1 s=1
on_request r=0 c=2 s=1
start_view_change r=1 v=1
start_view_change r=2 v=1
do_view_change r=1
do_view_change r=2
merge r=1 b=1
start_view r=1
on_start_view r=2 v=1 n=0
on_request r=1 c=1 s=1
on_prepare r=2 o=1
append r=1 o=1
append r=2 o=1
start_view_change r=2 v=2
start_view_change r=0 v=2
do_view_change r=2
do_view_change r=0
merge r=2 b=0
repair r=2 o=1
"""
"""View 1 committed op 1; replica 2 merges the longer log of view 0, and writes it over what it acknowledged."""
