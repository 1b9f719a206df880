"""Measuring: problems in, repetitions of every choice out, on one device of this machine."""
