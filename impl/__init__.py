"""The replicated key-value store: a sans-IO replica, its storage, its network and its simulator.

`impl` never imports `spec` or `refinement`; it meets them only through the native trace (`traces/README.md`).
"""
