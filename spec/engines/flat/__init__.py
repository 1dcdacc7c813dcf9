"""Flat replay: the actions of a specification compiled to LLVM, over windows of 64-bit words that grow and are let go.

It takes the same steps as `engines.replay`, in any number of views, ops, clients and requests; what it cannot say here
and now (`lower.FAILED`) is left to that one.
"""
