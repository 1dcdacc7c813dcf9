"""The protocol, written once: state and messages, actions, invariants, faults, bounded models."""

from viewproof.spec.vsr.bounds import Bounds
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.faults import FAULTS
from viewproof.spec.vsr.models import MODELS, build, model, unbounded

__all__ = ["FAULTS", "MODELS", "Bounds", "Config", "build", "model", "unbounded"]
