"""rplvq inside other libraries, measured: ``python -m examples.ecosystem run`` from the repository's root."""
