"""Which modules of the package pytest leaves out when it looks for examples in docstrings."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("numba") else ["rplvq/lanes/_registers.py"]
