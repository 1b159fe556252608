"""The pipeline: from a configuration to a result."""
