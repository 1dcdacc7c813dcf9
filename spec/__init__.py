"""The executable specification: the language (`lang`), the protocol (`vsr`) and the engines (`engines`)."""
