"""What fills the gap: a registry of operators, one file each."""
