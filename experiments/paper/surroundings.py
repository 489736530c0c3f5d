"""Where results come from: the machine, the versions, the code."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

import figmn

_DISTRIBUTIONS: Final = ("numpy", "scipy", "scikit-learn", "numba")


def surroundings() -> dict[str, str]:
    """All that results depend on beside their settings and the code, by name."""
    versions = {name: metadata.version(name) for name in _DISTRIBUTIONS}
    return {
        "machine": f"{_processor()}, {usable_cores()} cores",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        **versions,
        "figmn": metadata.version("figmn"),
    }


def usable_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"


def code_digest(spared: Sequence[str]) -> str:
    """Digest of the sources of figmn, but for some of its folders, and of the data sets."""
    package, data = Path(figmn.__file__).parent, Path(__file__).parent / "datasets"
    sources = {path.relative_to(package): path for path in package.rglob("*.py")}
    counted = [path for name, path in sorted(sources.items()) if name.parts[0] not in spared]
    digest = hashlib.sha256()
    for path in (*counted, *sorted(data.glob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
