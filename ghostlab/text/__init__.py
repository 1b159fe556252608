"""What is read: corpora, documents, token windows."""
