"""The reference pages of `docs/reference`, each made from declarations."""
