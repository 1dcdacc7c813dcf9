"""What is to be said of a fleet of runs, from a DataFrame of verdicts: a few small tables, however many runs."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from viewproof.refinement.reports.fleet import Cause, Fleet, Share
from viewproof.refinement.spark.frames import ColumnError, check_verdicts, coverage, violations

CAUSES_MAX = 50
MISSING_MAX = 30
SHARES_MAX = 60
RUNS_LISTED = 20
STORIES = 5
"""So many of the runs of a cause are told whole."""


def fleet(verdicts: DataFrame, by: str | None = None) -> Fleet:
    """Collect the tables of the page; `by` is a column of `verdicts` to show them by (a day, a build).

    Raises `ColumnError` for a column that is not there.
    """
    check_verdicts(verdicts, "run", "verdict", "events", "violations", "missing")
    if by is not None and by not in verdicts.columns:
        raise ColumnError(f"{by}: there is no such column of the verdicts; there are: {', '.join(verdicts.columns)}")
    counts = verdicts.groupBy("verdict").agg(fn.count("*").alias("runs"), fn.sum("events").alias("events")).collect()
    kind = fn.regexp_replace("missing", "[0-9]+", "N").alias("kind")
    missing = (
        verdicts.where(fn.col("verdict") == "inconclusive")
        .select("run", fn.explode("missing").alias("missing"))
        .groupBy(kind)
        .agg(fn.count_distinct("run").alias("runs"), fn.min(fn.struct("run", "missing")).alias("one"))
        .orderBy(fn.desc("runs"), "kind")
        .limit(MISSING_MAX)
    )
    guards = [row.asDict() for row in coverage(verdicts, guards=True).collect()]
    names = ("action", "guard", "place", "held", "open", "refused")
    return Fleet(
        runs={row["verdict"]: row["runs"] for row in counts},
        events=sum(row["events"] or 0 for row in counts),
        causes=tuple(_causes(verdicts)),
        missing=tuple((row["runs"], row["one"]["run"], row["one"]["missing"]) for row in missing.collect()),
        coverage=tuple((row["action"], row["steps"], row["runs"]) for row in coverage(verdicts).collect()),
        guards=tuple(tuple(row[n] for n in names) for row in guards if row["open"] or row["refused"]),
        idle=tuple(dict.fromkeys(row["action"] for row in guards if not row["runs"])),
        by=by or "",
        shares=tuple(_shares(verdicts, by)) if by else (),
    )


def _causes(verdicts: DataFrame) -> list[Cause]:
    """Each cause with a violation of it, told whole, and some of its runs."""
    found = violations(verdicts)
    one = fn.min_by(fn.struct(*found.columns), "run").alias("one")
    by_cause = found.groupBy("rule_fingerprint").agg(
        fn.count_distinct("run").alias("runs"), one, fn.slice(fn.sort_array(fn.collect_set("run")), 1, RUNS_LISTED)
        .alias("listed"),
    )  # fmt: skip
    rows = by_cause.orderBy(fn.desc("runs"), "rule_fingerprint").limit(CAUSES_MAX).collect()
    stories = _stories(found, {row["rule_fingerprint"]: row["listed"][:STORIES] for row in rows})
    return [
        Cause(row["runs"], tuple(row["listed"]), row["one"].asDict(recursive=True), stories[row["rule_fingerprint"]])
        for row in rows
    ]


def _stories(found: DataFrame, wanted: dict[str, list[str]]) -> dict[str, dict[str, dict[str, Any]]]:
    """By cause and run its first violation of that cause."""
    names = sorted({run for runs in wanted.values() for run in runs})
    columns = ("run", "rule_fingerprint", "node", "seq", "action", "message", "changes", "why_not", "story")
    rows = found.where(fn.col("run").isin(names)).select(*columns).collect() if names else []
    stories: dict[str, dict[str, dict[str, Any]]] = {cause: {} for cause in wanted}
    for row in rows:
        cause = row["rule_fingerprint"]
        if row["run"] in wanted.get(cause, ()):
            stories[cause].setdefault(row["run"], row.asDict(recursive=True))
    return stories


def _shares(verdicts: DataFrame, by: str) -> list[Share]:
    """The last values of the column, with how many runs of each had which verdict."""
    counts = verdicts.groupBy(fn.col(f"`{by}`").cast("string").alias("value")).pivot("verdict").count()
    rows: list[dict[str, Any]] = [row.asDict() for row in counts.orderBy(fn.desc("value")).limit(SHARES_MAX).collect()]
    return [Share(str(row.pop("value")), {name: count or 0 for name, count in row.items()}) for row in reversed(rows)]
