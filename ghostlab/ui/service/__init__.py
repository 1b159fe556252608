"""What the page asks of the lab; no gradio here."""
