from __future__ import annotations

import os
from pathlib import Path

import pytest

from scheduler.errors import ConfigError
from scheduler.signals.files import fingerprint, read_rule_files
from scheduler.strict_yaml.composer import MAX_BYTES


def mount(folder: Path, version: str, content: bytes) -> None:
    """Write a version of a ConfigMap volume as the kubelet does, and swap the link."""
    data = folder / f"..{version}"
    data.mkdir(parents=True)
    (data / "rules.yaml").write_bytes(content)
    link = folder / "..data_tmp"
    link.symlink_to(data.name)
    link.replace(folder / "..data")
    if not (folder / "rules.yaml").is_symlink():
        (folder / "rules.yaml").symlink_to("..data/rules.yaml")


def test_a_folder_means_its_yaml_files_in_order(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", ".hidden.yaml", "notes.txt", "c.yaml~"):
        (tmp_path / name).write_text(name)
    (tmp_path / "sub.yaml").mkdir()
    (tmp_path / "sub.yaml" / "d.yaml").write_text("d")
    assert read_rule_files([tmp_path]) == {str(tmp_path / "a.yml"): b"a.yml", str(tmp_path / "b.yaml"): b"b.yaml"}


def test_a_named_file_needs_no_suffix(tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("x")
    assert list(read_rule_files([tmp_path / "rules"])) == [str(tmp_path / "rules")]


def test_a_file_meant_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("x")
    assert len(read_rule_files([tmp_path, tmp_path / "a.yaml", tmp_path])) == 1


def test_a_config_map_volume_shows_its_files_once(tmp_path: Path) -> None:
    mount(tmp_path, "v1", b"one")
    assert read_rule_files([tmp_path]) == {str(tmp_path / "rules.yaml"): b"one"}


def test_the_swap_of_a_config_map_changes_the_fingerprint(tmp_path: Path) -> None:
    mount(tmp_path, "v1", b"one")
    before = fingerprint([tmp_path])
    assert fingerprint([tmp_path]) == before
    mount(tmp_path, "v2", b"two")
    assert fingerprint([tmp_path]) != before
    assert read_rule_files([tmp_path]) == {str(tmp_path / "rules.yaml"): b"two"}


def test_an_edit_in_place_changes_the_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("one")
    before = fingerprint([path])
    stat = path.stat()
    path.write_text("two")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert fingerprint([path]) != before


def test_a_new_and_a_removed_file_change_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("one")
    one = fingerprint([tmp_path])
    (tmp_path / "b.yaml").write_text("two")
    two = fingerprint([tmp_path])
    (tmp_path / "a.yaml").unlink()
    (tmp_path / "b.yaml").unlink()
    assert len({one, two, fingerprint([tmp_path])}) == 3
    assert fingerprint([tmp_path / "gone"])


def test_a_file_beyond_the_limit_is_not_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"#" * (MAX_BYTES + 100))
    (content,) = read_rule_files([tmp_path]).values()
    assert len(content) == MAX_BYTES + 1


@pytest.mark.parametrize("name", ["gone.yaml", "gone/", "dangling.yaml"])
def test_a_missing_path_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "dangling.yaml").symlink_to("nowhere")
    with pytest.raises(ConfigError, match="no such file or folder"):
        read_rule_files([tmp_path / name])


def test_a_folder_without_rule_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no rule file in this folder. Write a file named \*\.yaml"):
        read_rule_files([tmp_path])


def test_a_link_that_points_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("a.yaml")
    with pytest.raises(ConfigError):
        read_rule_files([tmp_path])
    assert fingerprint([tmp_path])
