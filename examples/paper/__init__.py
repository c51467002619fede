"""The paper's experiments, repeated: ``python -m examples.paper run`` from the root of the repository."""
