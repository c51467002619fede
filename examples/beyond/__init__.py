"""What goes beyond the paper, measured against it: ``python -m examples.beyond run`` from the repository's root."""
