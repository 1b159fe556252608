"""Entry point of the app and of a Space; what gradio and ghostlab.settings read of the environment counts."""

import os
import sys

from ghostlab.errors import GhostlabError
from ghostlab.settings import Settings


def lent_gpu(settings: Settings):
    """On a Space with ZeroGPU: the laboratory whose one function is lent a GPU. Elsewhere ``None``."""
    if os.environ.get("SPACES_ZERO_GPU", "").lower() not in ("1", "t", "true"):
        return None
    import spaces  # the host installs it; before torch
    from gradio import Error

    from ghostlab.ui.service.zerogpu import LentGpu, compute, seconds

    return LentGpu(spaces.GPU(compute, duration=seconds), settings, Error)


def main() -> int:
    """Open the app; 2 if it cannot be opened as the environment asks."""
    try:
        settings = Settings.from_env()  # before gradio, which reads the port at import
        lab = lent_gpu(settings)
        if os.environ.get("SPACE_ID"):
            from ghostlab.ui.service import assets

            assets.fetch(settings)
        from ghostlab.ui.app import launch

        launch(settings, lab=lab)
    except GhostlabError as error:
        print("ghostlab:", error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
