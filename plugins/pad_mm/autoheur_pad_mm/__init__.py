"""The operator pad_mm: pad the operands of aten.mm to aligned sizes, or not."""
