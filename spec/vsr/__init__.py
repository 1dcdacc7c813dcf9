"""The protocol, written once: state and messages, actions, invariants, faults, bounded models."""

from spec.vsr.config import Config
from spec.vsr.faults import FAULTS
from spec.vsr.models import MODELS, Bounds, build, model, unbounded

__all__ = ["FAULTS", "MODELS", "Bounds", "Config", "build", "model", "unbounded"]
