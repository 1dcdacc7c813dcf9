"""The audit on Spark: traces as files, spread over executors, and traces as a DataFrame."""

from viewproof.refinement.spark.kept_files import audit_from
from viewproof.refinement.spark.plans import audit
from viewproof.refinement.spark.session import SparkStartError, start_session

__all__ = ["SparkStartError", "audit", "audit_from", "start_session"]
