"""The atlas: every block of the model."""
