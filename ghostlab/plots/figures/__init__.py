"""The figures, one module per subject."""
