"""Overview: the result at one look, and its files."""
