"""What is known after a run: plain frozen records; nothing here imports torch."""
