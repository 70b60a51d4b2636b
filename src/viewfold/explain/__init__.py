"""What there is to say about clusters: what happened to them from step to step."""
