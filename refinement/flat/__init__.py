"""The audit of complete evidence, compiled to LLVM over columns: it says that a run conforms, or nothing."""
