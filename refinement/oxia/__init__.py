"""Oxia's logs (docs/oxia.md): JSON lines of its servers and its coordinator, as events of `spec.oxia`."""
