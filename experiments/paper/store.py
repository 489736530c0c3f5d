"""Results on disk: one file for each unit of work, written all or nothing."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from paper.experiment import Result, Unit


class Record(NamedTuple):
    """What came of a unit, and the seconds that it took."""

    result: Result
    seconds: float


class Store:
    """Folder of results.

    A file's name holds a digest of the unit's settings and of the surroundings (machine,
    versions, code), so results of another configuration are never taken for these.

    Parameters
    ----------
    folder : path
    surroundings : dict
        All that results depend on beside settings, as JSON can hold it.
    """

    def __init__(self, folder: Path, surroundings: dict[str, Any]) -> None:
        self.folder = folder
        self.surroundings = surroundings

    def load(self, experiment: str, unit: Unit) -> Record | None:
        """The kept record of a unit, or None if there is none that can be read."""
        try:
            kept = json.loads(self._path(experiment, unit).read_text(encoding="utf-8"))
            return Record(kept["result"], float(kept["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(self, experiment: str, unit: Unit, record: Record) -> None:
        """Keep a record; whatever happens, there is a whole file or none."""
        path = self._path(experiment, unit)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "experiment": experiment,
            "unit": unit.name,
            "settings": unit.settings,
            "surroundings": self.surroundings,
            "seconds": record.seconds,
            "result": record.result,
        }
        write_atomically(path, json.dumps(content, indent=1) + "\n")

    def _path(self, experiment: str, unit: Unit) -> Path:
        configuration = json.dumps([unit.settings, self.surroundings], sort_keys=True)
        digest = hashlib.sha256(configuration.encode()).hexdigest()[:12]
        return self.folder / experiment / f"{unit.name}-{digest}.json"


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that no reader ever sees a part of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.chmod(temporary, 0o644)  # mkstemp lets nobody else read
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
