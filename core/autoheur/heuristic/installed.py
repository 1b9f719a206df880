"""The artifacts that the user has installed on this machine; they take precedence over everything that plugins ship."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import attrs

from autoheur.errors import ArtifactError, InputError
from autoheur.heuristic import artifact as artifacts
from autoheur.heuristic.artifact import Artifact

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def home() -> Path:
    """Where autoheur keeps its files: ``$AUTOHEUR_HOME``, or the platform's folder for user data."""
    if folder := os.environ.get("AUTOHEUR_HOME"):
        return Path(folder)
    import platformdirs

    return Path(platformdirs.user_data_dir("autoheur", appauthor=False))


@attrs.frozen
class Store:
    """Installed artifacts, one file each, in one folder; the file's stem is the name they are uninstalled by."""

    folder: Path

    @classmethod
    def default(cls) -> Store:
        return cls(home() / "artifacts")

    def files(self) -> Iterator[Path]:
        """The installed files, sorted by name. Reading them may still fail."""
        try:
            yield from sorted(self.folder.glob("*.json"))
        except OSError:  # unreadable is as good as empty: nothing installed may break a compile
            return

    def install(self, source: Path) -> tuple[Artifact, Path]:
        """Validate an artifact file and put it into the store, replacing one of the same name.

        Raises:
            ArtifactError: the file is not a valid artifact, or the store cannot be written.
        """
        artifact = artifacts.read(source)
        if not _NAME.fullmatch(artifact.name):
            raise ArtifactError(
                f"{source}: the artifact's name {artifact.name!r} cannot be a file name; train it with another --name"
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArtifactError(f"{self.folder}: cannot create the folder: {error.strerror or error}") from None
        target = self.folder / f"{artifact.name}.json"
        artifacts.write(artifact, target)
        return artifact, target

    def uninstall(self, name: str) -> Path:
        """Remove an installed artifact by name.

        Raises:
            InputError: none of that name is installed; the message lists those that are.
        """
        target = self.folder / f"{name}.json"
        if not _NAME.fullmatch(name) or not target.is_file():
            installed = ", ".join(path.stem for path in self.files()) or "none"
            raise InputError(f"no artifact {name!r} is installed (installed: {installed})")
        try:
            target.unlink()
        except OSError as error:
            raise ArtifactError(f"{target}: cannot remove: {error.strerror or error}") from None
        return target
