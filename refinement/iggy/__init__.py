"""Iggy's logs (docs/iggy.md): lines of its servers, or of its simulator, as events of `spec.vsr`'s profile iggy."""
