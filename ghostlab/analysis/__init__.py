"""What a fitted map is, and what is left at the boundary."""
