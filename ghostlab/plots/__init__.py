"""Results as plotly figures; pure functions."""
