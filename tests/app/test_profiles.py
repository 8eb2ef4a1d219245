"""Profiles of a configuration file, with plugins of third parties."""

from __future__ import annotations

from scheduler.app.plugin_sources import NOT_BUILT, OURS
from scheduler.app.profiles import build_profiles
from scheduler.framework.profile import Profile
from scheduler.plugins import default_chain
from scheduler.settings.settings import Settings
from tests.app.third_party import PROFILE, ThirdParty


def names(chain: tuple[object, ...]) -> list[str]:
    return [type(plugin).__name__ for plugin in chain]


def weights(profile: Profile) -> dict[str, int]:
    return {plugin.name: weight for plugin, weight in profile.score}


def test_without_profiles_there_is_the_default_chain() -> None:
    (profile,) = build_profiles(Settings(scheduler_name="x")).values()
    default = Profile.build("x", default_chain())
    assert profile.scheduler_name == "x"
    assert (names(profile.filter), weights(profile)) == (names(default.filter), weights(default))


def test_an_empty_profile_is_the_default_chain_too(acme: ThirdParty) -> None:
    profiles = acme.build("scheduler: {profiles: [{}]}\n", scheduler_name="x")
    default = Profile.build("x", default_chain())
    assert list(profiles) == ["x"]
    assert (names(profiles["x"].filter), weights(profiles["x"])) == (names(default.filter), weights(default))


def test_plugins_come_by_import_path_with_their_arguments(acme: ThirdParty) -> None:
    profiles = acme.build(
        PROFILE
        + """\
      plugins:
        multiPoint:
          enabled: [{name: "acme:Rack", weight: 7}, {name: "acme:Both"}]
        score:
          enabled: [{name: ImageLocality, weight: 50}]
          disabled: [{name: Both}, {name: NodeAffinity}]
      pluginConfig:
        - {name: Rack, args: {labelKey: rack, zones: [a, b]}}
"""
    )
    profile = profiles["vane"]
    assert names(profile.filter)[-2:] == ["SignalFilter", "Both"]
    assert list(weights(profile).items()) == [
        ("ImageLocality", 50),
        ("TaintToleration", 3),
        ("NodeResourcesFit", 1),
        ("VolumeBinding", 1),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("NodeResourcesBalancedAllocation", 1),
        ("SignalScore", 1),
        ("Rack", 7),
    ]
    rack = next(plugin for plugin, _ in profile.score if plugin.name == "Rack")
    assert rack.args.label_key == "rack"  # type: ignore[attr-defined]
    assert rack.args.zones == ["a", "b"]  # type: ignore[attr-defined]
    assert len({id(plugin) for plugin in (*profile.prefilter, *profile.filter) if plugin.name == "NodeName"}) == 1


def test_arguments_may_name_the_plugin_as_it_was_enabled(acme: ThirdParty) -> None:
    block = PROFILE + "      plugins: {score: {enabled: [{name: 'acme:Rack'}]}}\n"
    profiles = acme.build(block + "      pluginConfig: [{name: 'acme:Rack', args: {labelKey: x}}]\n")
    assert names(tuple(plugin for plugin, _ in profiles["vane"].score))[-1] == "Rack"


def test_installed_plugins_come_by_the_name_of_their_entry_point(acme: ThirdParty) -> None:
    offered = acme.offer("acme-plugins", {"rack": "acme:Rack [fast]", "Both": "acme:Both"})
    profiles = acme.build(
        PROFILE
        + """\
      plugins: {score: {enabled: [{name: rack}, {name: Both}]}, filter: {disabled: [{name: Both}]}}
      pluginConfig: [{name: rack, args: {labelKey: x}}]
""",
        offered,
    )
    assert list(weights(profiles["vane"]))[-2:] == ["Rack", "Both"]
    # A distribution that is seen twice, as through two entries of the path, offers its plugins once.
    assert acme.build(PROFILE + "      plugins: {score: {enabled: [{name: Both}]}}\n", offered * 2)


def test_entry_points_are_those_of_the_interpreter(acme: ThirdParty) -> None:
    acme.offer("acme-plugins", {"Both": "acme:Both"})
    settings = acme.settings(PROFILE + "      plugins: {filter: {enabled: [{name: Both}]}}\n")
    assert names(build_profiles(settings)["vane"].filter)[-1] == "Both"


def test_profiles_share_classes_but_no_plugin(acme: ThirdParty) -> None:
    profiles = acme.build("scheduler: {profiles: [{schedulerName: a}, {schedulerName: b}]}\n")
    assert list(profiles) == ["a", "b"]
    assert not {id(plugin) for plugin in profiles["a"].filter} & {id(plugin) for plugin in profiles["b"].filter}
    assert profiles["a"].indexes == profiles["b"].indexes


def test_the_order_of_the_queue_may_be_anothers(acme: ThirdParty) -> None:
    sort = "plugins: {queueSort: {enabled: [{name: 'acme:Order'}], disabled: [{name: PrioritySort}]}}"
    config = "pluginConfig: [{name: Order, args: {labelKey: %s}}]"
    both = (
        f"scheduler: {{profiles: [{{schedulerName: a, {sort}, {config}}}, {{schedulerName: b, {sort}, {config}}}]}}\n"
    )
    assert names((acme.build(both % ("x", "x"))["b"].queue_sort,)) == ["Order"]
    (problem,) = acme.problems(both % ("x", "y"))
    assert "scheduler.profiles[1]: sorts the queue differently from profile 'a', but there is only one queue" in problem


def test_a_cluster_that_a_plugin_binds_at_must_be_known(acme: ThirdParty) -> None:
    lines = "enabled: [{name: 'acme:Far'}, {name: DefaultBinder}], disabled: [{name: DefaultBinder}]"
    block = PROFILE + f"      plugins: {{multiPoint: {{{lines}}}}}\n"
    assert names(acme.build(block, cluster=["edge=/k"])["vane"].bind) == ["Far", "DefaultBinder"]
    block = PROFILE + "      plugins: {bind: {enabled: [{name: 'acme:Far'}]}}\n"
    assert acme.problems(block, cluster=["other=/k"]) == [
        "6:41: scheduler.profiles[0].plugins.bind.enabled[0].name: Far names the cluster 'edge', and there is none of"
        " this name. Write one of the setting clusters (other), or add it there"
    ]


def test_what_binds_elsewhere_must_be_asked_before_the_plugin_that_takes_every_pod(acme: ThirdParty) -> None:
    block = PROFILE + "      plugins: {multiPoint: {enabled: [{name: 'acme:Far'}]}}\n"
    assert acme.problems(block, cluster=["edge=/k"]) == [
        "6:47: scheduler.profiles[0].plugins.multiPoint.enabled[0].name: Far binds in another cluster, but comes"
        " after DefaultBinder, which takes every Pod. Disable DefaultBinder, and enable it again after Far for the"
        " Pods that Far leaves"
    ]


def test_what_is_not_built_may_be_disabled(acme: ThirdParty) -> None:
    block = PROFILE + "      plugins: {multiPoint: {disabled: [{name: DefaultPreemption}, {name: ImageLocality}]}}\n"
    assert "ImageLocality" not in weights(acme.build(block)["vane"])


def test_no_name_is_both_built_and_not() -> None:
    assert not NOT_BUILT & set(OURS)
    assert {name: kind.__name__ for name, kind in OURS.items()} == {name: name for name in OURS}
