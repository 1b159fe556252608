"""The app, assembled: sidebar, source and progress line, tabs, events, and how it is launched."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import gradio as gr

from ghostlab import __version__
from ghostlab.errors import ConfigError
from ghostlab.settings import Settings
from ghostlab.ui import api, html, theme
from ghostlab.ui.events import Events
from ghostlab.ui.page import Page
from ghostlab.ui.service import assets
from ghostlab.ui.service.laboratory import Laboratory, load
from ghostlab.ui.service.service import EXAMPLE, Service
from ghostlab.ui.sidebar import sidebar
from ghostlab.ui.tabs import TABS

WARM_UP_DELAY = 5.0
"""Seconds after launch: the first page comes first, for importing torch keeps a core busy."""
RESERVE = 40
"""Events that can go on at once while every open page follows a job, which takes one each."""
_LOG = logging.getLogger(__name__)


def build_app(
    settings: Settings, lab: Laboratory | None = None, example: Path = EXAMPLE
) -> tuple[gr.Blocks, dict[str, Any]]:
    """The app of a :class:`Service` and the arguments of its ``launch``: ``demo.launch(**arguments)``."""
    with gr.Blocks(
        title="Ghostlab", analytics_enabled=False, fill_width=True, delete_cache=(3600, 86400)
    ) as demo:
        assemble(demo, Service(settings, lab, example))
    demo.queue(max_size=32, default_concurrency_limit=8, api_open=False)
    limits = settings.limits
    return demo, {
        "theme": theme.theme(),
        "css_paths": theme.STYLES,
        "head": theme.head(),
        "favicon_path": theme.ICON,
        "share": False,
        "ssr_mode": False,
        "run_history": False,
        "enable_monitoring": False,
        "show_error": False,
        "max_file_size": max(limits.file_bytes, limits.upload_bytes),
        "state_session_capacity": limits.open_pages,  # by default ten thousand pages stay in memory
        "max_threads": limits.open_pages + RESERVE,  # events at once, threads or not
        "footer_links": ["api"],
        "strict_cors": True,
    }


def assemble(demo: gr.Blocks, service: Service) -> Events:
    """Lay out and wire everything, inside ``demo``."""
    api.expose(service)  # first, so that its names are free
    page = Page(demo, service)
    sidebar.build(page)
    with gr.Row(elem_id="top"):
        gr.HTML(html.piece("header", theme.DESCRIPTION), elem_id="header", min_width=240)
        steps = html.piece("tour", theme.static("tour.json"))
        gr.HTML(steps, js_on_load=theme.static("tour.js"), elem_id="tour")
    notice = assets.notice(service.settings)
    gr.HTML(html.piece("notice", notice), elem_id="notice", visible=bool(notice))
    for part in (page.source, page.status, page.queue):
        part.render()
    tabs = []
    with gr.Tabs(elem_id="tabs"):
        for title, build in TABS.items():
            with gr.Tab(title) as page.tab:
                tabs.append(build(page))
    place = "this server" if service.settings.profile == "public" else "this machine"
    gr.HTML(html.piece("footer", __version__, place), elem_id="footer")
    events = Events(page, tabs)
    events.bind()
    return events


def launch(
    settings: Settings, host: str | None = None, port: int | None = None, lab: Laboratory | None = None
) -> None:
    """Build, listen and stay; torch is loaded after the page, not before it.

    Args:
        host, port: Where to listen; default ``GRADIO_SERVER_NAME`` and the port of the settings.
        lab: As for :class:`Service`.

    Raises:
        ConfigError: If the port is taken, or a proxy stands before this machine's own address.
    """
    port = port or settings.port  # not left to gradio, which would try the next hundred ports too
    demo, arguments = build_app(settings, lab)
    try:
        _, url, _ = demo.launch(
            server_name=host, server_port=port, prevent_thread_lock=True, quiet=True, **arguments
        )
    except OSError as error:
        demo.close()
        raise ConfigError(
            f"The app cannot listen on {f'port {port}' if port else 'any port from 7860 on'}: it is taken.",
            "Name another by --port or GRADIO_SERVER_PORT.",
        ) from error
    except ValueError as error:  # gradio asks itself for a page and waits three seconds
        demo.close()
        raise ConfigError(
            "The app does not reach its own address.",
            "Where a proxy is set, set NO_PROXY=127.0.0.1,localhost; on a very busy machine, try again.",
        ) from error
    print(f"Ghostlab is at {url} (Ctrl-C ends it)", flush=True)
    later = threading.Timer(WARM_UP_DELAY, warm_up)
    later.daemon = True
    later.start()
    demo.block_thread()


def warm_up() -> None:
    """Import what the first run needs, so that it does not wait for it."""
    try:
        load()
    except Exception:  # a page that works without it is better than none; the first run will say why
        _LOG.exception("could not load the laboratory")
