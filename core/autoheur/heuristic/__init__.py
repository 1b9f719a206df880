"""Artifacts: learned heuristics as data, and the store of installed ones."""
