"""What Ghostlab finds: plain frozen records, their files and their statistics; no torch."""
