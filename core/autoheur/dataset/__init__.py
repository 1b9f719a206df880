"""Datasets: measurements of one operator on one device, in Parquet or in AutoHeuristic logs."""
