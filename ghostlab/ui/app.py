"""The app, assembled: sidebar, source and progress line, tabs, events, and how it is launched."""

from __future__ import annotations

import logging
import threading
from typing import Any

import gradio as gr

from ghostlab import __version__
from ghostlab.errors import ConfigError
from ghostlab.plots import tokens
from ghostlab.settings import Settings
from ghostlab.ui import api, present, registry, theme, tour
from ghostlab.ui import queue as agenda
from ghostlab.ui.events import Events
from ghostlab.ui.service.downloads import Outbox
from ghostlab.ui.service.laboratory import Laboratory
from ghostlab.ui.service.service import Service
from ghostlab.ui.shell import QUIET, Shell
from ghostlab.ui.sidebar import picker, sidebar
from ghostlab.ui.tabs import TABS
from ghostlab.ui.tabs.compare.handlers import Compared
from ghostlab.ui.tabs.overview.files import Sharing
from ghostlab.ui.tabs.view import Page

WARM_UP_DELAY = 5.0
"""Seconds after launch: the first page comes first, for importing torch keeps a core busy."""
_LOG = logging.getLogger(__name__)


def build_app(settings: Settings, lab: Laboratory | None = None) -> tuple[gr.Blocks, dict[str, Any]]:
    """The app and the arguments that its ``launch`` needs: ``demo.launch(**arguments)``.

    Args:
        settings: The host's profile and limits.
        lab: Where runs are computed; default a :class:`ghostlab.lab.lab.Lab`, made when first needed.
    """
    service = Service(settings, lab)
    with gr.Blocks(
        title="Ghostlab", analytics_enabled=False, fill_width=True, delete_cache=(3600, 86400)
    ) as demo:
        controls = sidebar.build(settings, service.example_atlas)
        with gr.Row(elem_id="top"):
            gr.HTML(present.header(), elem_id="header", min_width=240)
            tour.build()
        lacking = registry.missing()
        gr.HTML(present.notice(lacking), elem_id="notice", visible=bool(lacking))
        shell = Shell(
            job=gr.Textbox("", visible=False, label="Job"),
            shown=gr.Textbox("", visible=False, label="Shown run"),
            drawn=gr.Textbox("", visible=False, label="Drawn run"),
            source=gr.HTML(
                '<div class="gl-source">Loading the example\N{HORIZONTAL ELLIPSIS}</div>', elem_id="source"
            ),
            status=gr.HTML(elem_id="status"),
            agenda=agenda.panel(),
            known=agenda.state(),
            where=gr.Textbox("", visible=False, label="Address"),
        )
        page = Page(shell.shown, service.result, settings.limits.hub_models)
        tabs, places = {}, {}
        with gr.Tabs(elem_id="tabs"):
            for title, build in TABS.items():
                with gr.Tab(title) as places[title]:
                    tabs[title] = build(page)
        tabs["Compare"].parts.kept.render()
        gr.HTML(present.footer(__version__, settings.profile), elem_id="footer")
        api.expose(service)  # first, so that its names are free
        events = Events(service, controls, tabs, shell)
        events.bind(demo)
        outbox = Outbox()
        Sharing(service, events.share, outbox).bind(demo, shell.shown, QUIET)
        Compared(service, tabs["Compare"].parts, outbox).bind(places["Compare"], shell.drawn, QUIET)
    demo.queue(max_size=32, default_concurrency_limit=8, api_open=False)
    return demo, _launch_arguments(settings)


def _launch_arguments(settings: Settings) -> dict[str, Any]:
    return {
        "theme": theme.theme(),
        "css_paths": [theme.CSS, agenda.CSS, picker.CSS, tour.CSS, tokens.CSS],
        "head": theme.head(),
        "favicon_path": theme.ICON,
        "share": False,
        "ssr_mode": False,
        "run_history": False,
        "enable_monitoring": False,
        "show_error": False,
        "max_file_size": max(settings.limits.file_bytes, settings.limits.upload_bytes),
        "state_session_capacity": settings.limits.open_pages,  # by default ten thousand pages stay in memory
        "max_threads": 80,  # each open page that follows a job sleeps in one
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
        registry.load()
    except Exception:  # a page that works without it is better than none; the first run will say why
        _LOG.exception("could not load the laboratory")
