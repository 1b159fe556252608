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
from ghostlab.ui.service import catalogue
from ghostlab.ui.service.laboratory import Laboratory
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
    """The app and the arguments that its ``launch`` needs: ``demo.launch(**arguments)``.

    Args:
        settings: The host's profile and limits.
        lab: Where runs are computed; default a :class:`ghostlab.lab.lab.Lab`, made when first needed.
        example: Folder of the finished run that the page opens on.
    """
    with gr.Blocks(
        title="Ghostlab", analytics_enabled=False, fill_width=True, delete_cache=(3600, 86400)
    ) as demo:
        assemble(demo, Service(settings, lab, example))
    demo.queue(max_size=32, default_concurrency_limit=8, api_open=False)
    return demo, _launch_arguments(settings)


def assemble(demo: gr.Blocks, service: Service) -> Events:
    """Lay out and wire everything, inside ``demo``."""
    api.expose(service)  # first, so that its names are free
    page = Page(demo, service)
    wire_scores = sidebar.build(page)
    with gr.Row(elem_id="top"):
        gr.HTML(html.header(), elem_id="header", min_width=240)
        gr.HTML(html.tour(theme.static("tour.json")), js_on_load=theme.static("tour.js"), elem_id="tour")
    notice = catalogue.notice(service.settings)
    gr.HTML(html.notice(notice), elem_id="notice", visible=bool(notice))
    for part in (page.source, page.status, page.queue):
        part.render()
    tabs = {}
    with gr.Tabs(elem_id="tabs"):
        for title, build in TABS.items():
            with gr.Tab(title) as page.tab:
                tabs[title] = build(page)
    gr.HTML(html.footer(__version__, service.settings.profile), elem_id="footer")
    wire_scores()
    events = Events(page, tabs)
    events.bind()
    return events


def _launch_arguments(settings: Settings) -> dict[str, Any]:
    return {
        "theme": theme.theme(),
        "css_paths": theme.STYLES,
        "head": theme.head(),
        "favicon_path": theme.ICON,
        "share": False,
        "ssr_mode": False,
        "run_history": False,
        "enable_monitoring": False,
        "show_error": False,
        "max_file_size": max(settings.limits.file_bytes, settings.limits.upload_bytes),
        "state_session_capacity": settings.limits.open_pages,  # by default ten thousand pages stay in memory
        "max_threads": settings.limits.open_pages + RESERVE,  # events at once, threads or not
        "footer_links": ["api"],
        "strict_cors": True,
    }


def launch(
    settings: Settings, host: str | None = None, port: int | None = None, lab: Laboratory | None = None
) -> None:
    """Build, listen and stay; torch is loaded after the page, not before it.

    Args:
        settings: The host's profile and limits.
        host, port: Where to listen; default ``GRADIO_SERVER_NAME`` and the port of the settings.
        lab: As for :func:`build_app`.

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
        catalogue.load()
    except Exception:  # a page that works without it is better than none; the first run will say why
        _LOG.exception("could not load the laboratory")
