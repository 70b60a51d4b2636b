"""How a view is folded into a consensus: pure functions on matrices, one module per method."""
