"""What fills the gap: a registry of stand-ins, one file each."""
