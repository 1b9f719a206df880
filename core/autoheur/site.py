"""For authors of sites: the places in torch where an operator is asked."""

from __future__ import annotations

from typing import Protocol


class Site(Protocol):
    """One place where torch asks."""

    @property
    def name(self) -> str: ...
