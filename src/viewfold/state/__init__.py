"""The state of a model, and the ways from one state to the next: pure functions, no files."""
