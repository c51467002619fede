"""Measurements of rplvq inside other libraries; run ``python -m examples.ecosystem run`` in the repository's root."""
