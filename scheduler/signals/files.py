"""Rule files on disk: which ones a set of paths means, their bytes, and whether anything changed since.

Knows how a ConfigMap is mounted: `rules.yaml -> ..data/rules.yaml` and `..data -> ..2026_…`, where an update swaps
the one link `..data`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from scheduler.errors import ConfigError
from scheduler.strict_yaml.composer import MAX_BYTES

SUFFIXES: Final = (".yaml", ".yml")
STDIN: Final = "-"
_ATTEMPTS: Final = 3

Fingerprint = tuple[tuple[str, str, int, int, int], ...]
"""Per file: the path as shown, the real path, mtime in ns, size, inode."""


def read_rule_files(
    paths: Iterable[str | os.PathLike[str]], stdin: Callable[[int], bytes] | None = None
) -> Mapping[str, bytes]:
    """Return the content of every rule file that `paths` mean, by the path that messages show.

    A folder means its `*.yaml` and `*.yml`, sorted, without what is hidden and without subfolders. A file over
    1 MiB comes cut, one byte longer than the format lets through. Where there is a `stdin`, the path `-` means what
    it gives, at most so many bytes.

    Raises
    ------
    ConfigError
        Where a path is missing, cannot be read, or is a folder without rule files.
    """
    given = list(paths)
    if stdin is not None and STDIN in given:
        others = [path for path in given if path != STDIN]
        return {"stdin": stdin(MAX_BYTES + 1), **(read_rule_files(others) if others else {})}
    roots = [Path(path) for path in given]
    for _ in range(_ATTEMPTS - 1):
        try:
            return _read(roots)
        except FileNotFoundError:
            continue  # a mounted ConfigMap was swapped between listing and reading
    try:
        return _read(roots)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{error.filename}: no such file or folder. Write the path of a rule file or of a folder"
        ) from error


def fingerprint(paths: Iterable[str | os.PathLike[str]]) -> Fingerprint:
    """Return what changes when any rule file does; cheap enough for several looks a second, never an exception."""
    found = []
    for path in paths:
        try:
            for shown, real in _files(Path(path)):
                resolved = os.path.realpath(real)
                stat = os.stat(resolved)
                found.append((str(shown), resolved, stat.st_mtime_ns, stat.st_size, stat.st_ino))
        except (OSError, ConfigError):
            found.append((str(path), "", 0, 0, 0))
    return tuple(found)


def _read(roots: list[Path]) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    seen: set[str] = set()
    for root in roots:
        try:
            for shown, real in _files(root):
                resolved = os.path.realpath(real)
                if resolved not in seen:
                    seen.add(resolved)
                    contents[str(shown)] = _content(real)
        except FileNotFoundError:
            raise
        except OSError as error:
            what = f"{error.filename}: cannot be read, got {error.strerror!r}"
            raise ConfigError(f"{what}. Allow reading it, or write another path") from error
    return contents


def _files(root: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each file as shown and as opened; the two differ inside a mounted ConfigMap."""
    if not root.is_dir():
        yield root, root
        return
    # Resolved once, so that all files come from the same version of a ConfigMap.
    data = root / "..data"
    folder = Path(os.path.realpath(data, strict=True)) if data.is_symlink() else root
    names = sorted(entry.name for entry in folder.iterdir() if _is_rule_file(entry))
    if not names:
        raise ConfigError(f"{root}: no rule file in this folder. Write a file named *.yaml into it, or another path")
    for name in names:
        yield root / name, folder / name


def _is_rule_file(entry: Path) -> bool:
    return not entry.name.startswith(".") and entry.suffix in SUFFIXES and not entry.is_dir()


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)
