"""From the specification's IR to machine code: `lower` writes expressions in a small subset of Python, `machine` turns
that into LLVM, `objects` keeps compiled code and links it. The search and the replay over flat memory share it.
"""
