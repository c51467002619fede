"""The experiments of the paper; run ``python -m examples.paper run`` in the root of the repository."""
