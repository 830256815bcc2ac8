"""The questions as methods, and the way from a question to its plan or its answer."""
