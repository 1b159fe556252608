"""Operator: what a map does, and switching parts of it off."""
