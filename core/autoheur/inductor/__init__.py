"""Lets TorchInductor ask autoheur while it compiles. Importing this package imports nothing; see docs/inductor.md."""
