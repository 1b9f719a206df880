"""Move the one version that all members carry: ``python tools/set_version.py 0.2.0`` (or ``make version V=0.2.0``).

It stands in every member's ``[project] version``, in what members require of one another (the meta distribution with
``==``, the others with ``~=``), and in ``autoheur.__version__``. All places are checked before the first is written.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

PROJECTS = ("pyproject.toml", "core/pyproject.toml", "learners/pyproject.toml", "plugins/*/pyproject.toml")
"""Where the workspace's distributions are described, relative to the root."""

VERSION = r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?"
_PROJECT = re.compile(rf'^version = "({VERSION})"$', re.MULTILINE)
_REQUIREMENT = re.compile(rf'"(autoheur(?:-[a-z-]+)?(?:\[[a-z,]+\])?)(==|~=)({VERSION})"')
_DUNDER = re.compile(rf'^__version__ = "({VERSION})"$', re.MULTILINE)


class VersionError(Exception):
    """The version cannot be moved; the message says why, in one line."""


def moved(root: Path, version: str) -> dict[Path, str]:
    """The new text of every file under ``root`` that holds the version.

    Raises:
        VersionError: ``version`` is not written ``X.Y.Z`` (with ``aN``, ``bN`` or ``rcN`` behind it where wanted), or a
            file does not hold its version exactly once.
    """
    if not re.fullmatch(VERSION, version):
        raise VersionError(f"{version!r} is not a version of the form 0.2.0 or 0.2.0rc1")
    texts: dict[Path, str] = {}
    paths = [path for pattern in PROJECTS for path in sorted(root.glob(pattern))]
    for path in paths:
        text = _replace_once(path, _PROJECT, f'version = "{version}"')
        texts[path] = _REQUIREMENT.sub(rf'"\g<1>\g<2>{version}"', text)
    path = root / "core" / "autoheur" / "__init__.py"
    texts[path] = _replace_once(path, _DUNDER, f'__version__ = "{version}"')
    return texts


def _replace_once(path: Path, pattern: re.Pattern[str], replacement: str) -> str:
    text, count = pattern.subn(replacement, path.read_text(encoding="utf-8"))
    if count != 1:
        raise VersionError(f"{path}: {count} lines match {pattern.pattern}, not 1")
    return text


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python tools/set_version.py VERSION", file=sys.stderr)
        return 2
    root = Path(__file__).resolve().parents[1]
    try:
        texts = moved(root, arguments[0])
    except (OSError, VersionError) as error:
        print(f"set_version: {error}", file=sys.stderr)
        return 2
    for path, text in texts.items():
        temporary = path.with_name(f"{path.name}.new")
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    print(f"version {arguments[0]} in {len(texts)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
