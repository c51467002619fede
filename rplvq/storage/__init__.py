"""The parts of a model file: the archive, the coding of values, the names of parts."""
