# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Segments, their indexes, partitions and log directories."""
