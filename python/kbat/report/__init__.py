"""A report on a log: one web page that works offline. The steps are data, figures and tables, and the page."""

from kbat.report.data import Check, Finding, Report, collect
from kbat.report.file import writer
from kbat.report.page import page

__all__ = ["Check", "Finding", "Report", "collect", "page", "writer"]
