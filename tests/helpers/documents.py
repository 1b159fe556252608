"""Short documents, each of its own."""

DOCUMENTS = [f"Document {i} tells of lighthouse number {i * i}." for i in range(500)]
