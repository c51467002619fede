"""Measurements of what goes beyond the paper; run ``python -m examples.beyond run`` in the root of the repository."""
