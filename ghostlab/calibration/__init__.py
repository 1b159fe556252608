"""States at every boundary of the original model, and their second moments."""
