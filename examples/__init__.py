"""Examples of rplvq."""
