"""What became of each guard conjunct of the specification over a fleet, from a DataFrame of verdicts.

A step is taken where every guard of its action is true, or open for want of evidence; a guard that is false ends its
run. So steps by action, open guards and violations say it all, whichever replay judged a run, and which guards there
are is recorded anew from the configuration that the run showed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from viewproof.refinement.adapter import NATIVE, adapter
from viewproof.spec.engines.guards import guard_text
from viewproof.spec.lang import SpecError

_TEXT, _NUMBER = pa.string(), pa.int64()
_COUNTED = pa.schema([
    *((name, _TEXT) for name in ("action", "guard", "place")),
    *((name, _NUMBER) for name in ("number", "held", "open", "refused", "runs")),
])  # fmt: skip


def guards(verdicts: DataFrame) -> DataFrame:
    """One row per guard conjunct of each action (`viewproof.spark.coverage`)."""
    key = fn.to_json("configuration").alias("key")
    refused = (
        verdicts.select("run", key, fn.explode("violations.rule_id").alias("name"))
        .where(fn.col("name").rlike("^[^/]+/[0-9]+$"))
        .select("run", "key", fn.lit("refused").alias("what"), "name", fn.lit(1).cast("bigint").alias("steps"))
    )
    parts = (
        verdicts.select("run", key, fn.lit(what).alias("what"), fn.explode(column).alias("name", "steps"))
        for what, column in (("held", "coverage"), ("open", "open_guards"))
    )
    for part in parts:
        refused = refused.unionByName(part)
    runs = fn.count_distinct(fn.when(fn.col("steps") > 0, fn.col("run")))
    counts = refused.groupBy("key", "what", "name").agg(fn.sum("steps").alias("steps"), runs.alias("runs"))
    each = counts.mapInArrow(_by_guard, from_arrow_schema(_COUNTED))
    sums = [fn.sum(name).alias(name) for name in ("held", "open", "refused", "runs")]
    found = each.groupBy("action", "guard", "place").agg(fn.min("number").alias("number"), *sums)
    return found.orderBy("action", "number", "place").drop("number")


def _by_guard(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Counts by configuration and action, or action/number, as counts of guards."""
    for batch in batches:
        rows = [row for one in batch.to_pylist() for row in _rows(**one)]
        yield pa.RecordBatch.from_pylist(rows, schema=_COUNTED)


def _rows(key: str | None, what: str, name: str, steps: int, runs: int) -> Iterator[dict[str, Any]]:
    action, _, number = name.partition("/")
    for at, (text, place) in zip(count(), _guards_of(key or "{}").get(action, ()), strict=False):
        none = dict.fromkeys(("held", "open", "refused", "runs"), 0)
        row = {"action": action, "guard": text, "place": place, "number": at, **none}
        if not number:
            yield {**row, "held": steps, "runs": runs}
        elif int(number) == at:
            yield {**row, what: steps, "held": -steps if what == "open" else 0}


@lru_cache(maxsize=64)
def _guards_of(shown: str) -> dict[str, list[tuple[str, str]]]:
    """The guards of each action, as written, with their places, in the configuration that a run showed; none of one
    that is impossible, and was permitted.
    """
    system = adapter(NATIVE).system
    profile, record = system.profile, dict.fromkeys(system.names) | msgspec.json.decode(shown)
    if any(record[name] is None for name in profile.needed):
        return {}
    try:
        cfg, _ = profile.kind(profile.configure(record, frozenset()))
    except SpecError:
        return {}
    spec = profile.spec(cfg)
    return {ir.name: [(guard_text(g.source), str(g.source)) for g in ir.guards] for ir in spec.action_irs}
