"""The operator addmm: pad the operands of aten.addmm to aligned sizes, or not."""
