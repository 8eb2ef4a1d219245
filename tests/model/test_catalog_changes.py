"""What a table that follows the catalog is told."""

from __future__ import annotations

from scheduler.model.catalog import Catalog
from scheduler.model.volumes import CSINode, PersistentVolume
from tests.plugins.volumes.objects import csi_node, volume


class Table:
    pass


def test_changes_are_told_in_order_since_a_generation_and_by_kind() -> None:
    catalog = Catalog()
    catalog.set(volume("a"))
    seen = catalog.generation(PersistentVolume)
    catalog.set(volume("b"))
    catalog.set(csi_node("n"))
    catalog.remove(PersistentVolume, "", "a")

    assert catalog.changed_since(PersistentVolume, seen) == [("", "b"), ("", "a")]
    assert catalog.changed_since(PersistentVolume, catalog.generation(PersistentVolume)) == []
    assert catalog.changed_since(CSINode, 0) == [("", "n")]


def test_an_object_that_was_not_there_has_not_changed() -> None:
    catalog = Catalog()
    catalog.remove(PersistentVolume, "", "a")

    assert catalog.changed_since(PersistentVolume, 0) == []


def test_who_asks_too_seldom_has_to_look_at_everything() -> None:
    catalog = Catalog()
    seen = catalog.generation(PersistentVolume)
    for number in range(20_000):
        catalog.set(volume(f"v{number % 3}"))

    assert catalog.changed_since(PersistentVolume, seen) is None
    recent = catalog.changed_since(PersistentVolume, catalog.generation(PersistentVolume) - 2)
    assert recent == [("", "v0"), ("", "v1")]


def test_there_is_one_table_of_a_class() -> None:
    catalog = Catalog()

    assert catalog.derived(Table) is catalog.derived(Table)
    assert Catalog().derived(Table) is not catalog.derived(Table)
