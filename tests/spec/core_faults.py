"""Mistakes of the core that show in every configuration: the tests of engines take them at that."""

CORE_FAULTS = (
    "boot.view_from_last_prepare",
    "commit.apply_at_replicate",
    "state.getstate_truncates",
    "view.even_quorum",
)
