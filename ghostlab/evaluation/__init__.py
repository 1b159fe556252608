"""What came back: likelihood, agreement with the original, generation."""
