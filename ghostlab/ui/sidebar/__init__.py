"""Where a run is put together."""
