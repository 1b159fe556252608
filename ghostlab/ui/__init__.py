"""The Gradio app: the only room that imports gradio."""
