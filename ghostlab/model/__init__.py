"""What a decoder LLM is: loading it, running any span of its blocks, cutting it."""
