"""The operator bmm: pad the operands of aten.bmm to aligned sizes, or not."""
