"""The text logs of PyTorch's AutoHeuristic: read and written."""
