"""Compare: two recoveries side by side."""
