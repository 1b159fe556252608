"""One self-contained HTML file on a run or on an atlas: opens without a network."""

from ghostlab.report.page import render, render_atlas, write_atlas, write_report

__all__ = ["render", "render_atlas", "write_atlas", "write_report"]
