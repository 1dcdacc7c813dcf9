"""Oxia's log replication, written once: state and messages, actions, invariants, faults, bounded models."""

from viewproof.spec.oxia.config import Config
from viewproof.spec.oxia.faults import FAULTS
from viewproof.spec.oxia.models import MODELS, Bounds, build, model

__all__ = ["FAULTS", "MODELS", "Bounds", "Config", "build", "model"]
