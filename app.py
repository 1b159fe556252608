"""Entry point of the app and of a Space: ``python app.py``.

Honours GRADIO_SERVER_NAME and GRADIO_SERVER_PORT, and what ghostlab.settings reads.
"""

from ghostlab.settings import Settings
from ghostlab.ui.app import launch

if __name__ == "__main__":
    launch(Settings.from_env())
