"""The replica's trace: its events, and the files that hold them. It meets `refinement` only through those files."""
