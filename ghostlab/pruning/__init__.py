"""Which blocks go: a registry of selection criteria."""
