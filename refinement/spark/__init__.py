"""The audit on Spark: traces as files, spread over executors, and traces as a DataFrame."""

from viewproof.refinement.spark.plans import audit
from viewproof.refinement.spark.session import SparkStartError, start_session

__all__ = ["SparkStartError", "audit", "start_session"]
