first = audit(traces).violations[0]
file, line = Path(first.file).name, first.line
# The replica was not normal yet, and executed: it had just restarted, and took its journal for what is committed.
mistake = "boot.replays_uncommitted"
