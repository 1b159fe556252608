"""Text files that visitors uploaded: each serves only the page that sent it. No gradio here."""

from __future__ import annotations

from pathlib import Path

from ghostlab.config import RunConfig
from ghostlab.errors import GhostlabError, TextError
from ghostlab.settings import Settings
from ghostlab.text import uploads
from ghostlab.text.corpora import PASTE, load_text


class OwnedTexts:
    """The uploaded texts of one server, as many as it keeps."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._owners: dict[str, str] = {}

    def take(self, path: Path, owner: str) -> tuple[str, str]:
        """Take a text file over: the source that names it in a run of this owner, and a sentence on it.

        Raises:
            TextError: If it is too large, unreadable, or holds too little to be divided.
        """
        source = uploads.keep(path, self.settings)
        try:
            text = load_text(source, settings=self.settings)
        except GhostlabError:
            uploads.find(source, self.settings).unlink()
            raise
        self._owners[source] = owner
        while len(self._owners) > uploads.KEPT:
            del self._owners[next(iter(self._owners))]
        noun = "document" if len(text.whole) == 1 else "documents"
        return source, f"{text.title}: {len(text.whole):,} {noun}, {text.whole.characters:,} characters."

    def check(self, config: RunConfig, owner: str) -> None:
        """Raise TextError if a configuration names a file that was uploaded on another page."""
        sources = (s for s in (config.text, config.held_out_text or "") if not s.startswith(PASTE))
        if any(self._owners.get(name) != owner for source in sources for name in uploads.uploads_in(source)):
            raise TextError("That file was uploaded on another page.", "Upload it here to use it.")
