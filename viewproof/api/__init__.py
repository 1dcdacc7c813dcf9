"""What the public functions of `viewproof` do; `vsr` is a layer above them that reads options and prints."""
