"""Profiles of a configuration file, with plugins of third parties."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.app.plugin_making import KUBE_ARGS_NOT_BUILT
from scheduler.app.plugin_sources import NOT_BUILT, OURS
from scheduler.app.profiles import build_profiles
from scheduler.framework.profile import Profile
from scheduler.plugins import default_chain
from scheduler.settings import Settings
from tests.app.third_party import ThirdParty

PROFILE = "scheduler:\n  profiles:\n    - schedulerName: vane\n"


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ThirdParty:
    return ThirdParty(tmp_path, monkeypatch)


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
    assert "scheduler.profiles[1]: sorts the queue in another way than profile 'a', and there is one queue" in problem


def test_a_cluster_that_a_plugin_binds_at_must_be_known(acme: ThirdParty) -> None:
    block = PROFILE + "      plugins: {bind: {enabled: [{name: 'acme:Far'}]}}\n"
    assert names(acme.build(block, cluster=["edge=/k"])["vane"].bind) == ["DefaultBinder", "Far"]
    assert acme.problems(block, cluster=["other=/k"]) == [
        "6:35: scheduler.profiles[0].plugins.bind.enabled[0].name: Far names the cluster 'edge', and there is none of"
        " this name. Write one of the setting clusters (other), or add it there"
    ]


def test_what_is_not_built_may_be_disabled(acme: ThirdParty) -> None:
    block = PROFILE + "      plugins: {multiPoint: {disabled: [{name: DefaultPreemption}, {name: ImageLocality}]}}\n"
    assert "ImageLocality" not in weights(acme.build(block)["vane"])


def test_no_name_is_both_built_and_not() -> None:
    assert not NOT_BUILT & set(OURS)
    assert set(OURS) >= KUBE_ARGS_NOT_BUILT
    assert all(OURS[name].Args is None for name in KUBE_ARGS_NOT_BUILT)
    assert {name: kind.__name__ for name, kind in OURS.items()} == {name: name for name in OURS}


def at(place: str) -> str:
    """Write out `line:column: path` with the way to the only profile."""
    spot, _, path = place.partition(": ")
    return f"{spot}: scheduler.profiles[0]{'.' if path else ''}{path}"


@pytest.mark.parametrize(
    ("plugins", "place", "expected"),
    [
        pytest.param(
            "score: {enabled: [{name: ImageLocalty}]}",
            "6:36: plugins.score.enabled[0].name",
            "no such plugin, got 'ImageLocalty' (is it ImageLocality?). Write a name of Vane's, one that an"
            " installed package offers in the entry point group vane.plugins, or an import path as"
            " package.module:Class",
            id="a slip",
        ),
        pytest.param(
            "filter: {enabled: [{name: InterPodAffinity}]}",
            "6:37: plugins.filter.enabled[0].name",
            "InterPodAffinity of kube-scheduler: not built yet. Drop it",
            id="a plugin that is not built",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme_nowhere.plugins:Rack'}]}",
            "6:37: plugins.filter.enabled[0].name",
            "cannot be imported: no module named 'acme_nowhere'. Install its package, or add its folder to PYTHONPATH",
            id="a module that is missing",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'needing:Rack'}]}",
            "6:37: plugins.filter.enabled[0].name",
            "cannot be imported: needing needs what is missing: No module named 'acme_missing'. Install it",
            id="a module whose own import is missing",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'failing:Rack'}]}",
            "6:37: plugins.filter.enabled[0].name",
            "cannot be imported: failing raised ZeroDivisionError: division by zero. Mend it",
            id="a module that raises",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'leaving:Rack'}]}",
            "6:37: plugins.filter.enabled[0].name",
            "cannot be imported: leaving raised SystemExit: 0. Mend it",
            id="a module that ends the process",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:Bot'}]}",
            "6:37: plugins.filter.enabled[0].name",
            "cannot be imported: module acme has no 'Bot' (is it Both?). Write a class of it",
            id="a class that is missing",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:'}]}",
            "6:37: plugins.filter.enabled[0].name",
            "must be an import path, got 'acme:'. Write package.module:Class",
            id="half a path",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:RackArgs'}]}",
            "6:37: plugins.filter.enabled[0].name",
            "'acme:RackArgs' is no plugin, got the class RackArgs. Write a class made from scheduler.framework.plugin",
            id="another class",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:no_plugin'}]}",
            "6:37: plugins.filter.enabled[0].name",
            "'acme:no_plugin' is no plugin, got an object of class Both. Write a class made from"
            " scheduler.framework.plugin",
            id="an object",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:Half'}]}",
            "6:37: plugins.filter.enabled[0].name",
            "Half lacks filter, score. Write the methods that its points ask for",
            id="methods that are missing",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:Both'}, {name: NodePorts}, {name: 'acme:Both'}]}",
            "6:77: plugins.filter.enabled[2].name",
            "Both is enabled twice at filter. Name it once",
            id="a name twice at a point",
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: NodePorts}, {name: NodePorts}]}",
            "6:60: plugins.multiPoint.enabled[1].name",
            "NodePorts is enabled twice at multiPoint. Name it once",
            id="a name twice at all points",
        ),
        pytest.param(
            "bind: {enabled: [{name: 'acme:Both'}]}",
            "6:35: plugins.bind.enabled[0].name",
            "Both does not implement bind. Drop it there; its points: filter, score",
            id="a point that it lacks",
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: 'acme:Pointless'}]}",
            "6:41: plugins.multiPoint.enabled[0].name",
            "Pointless does not implement any extension point. Drop it there; its points: none",
            id="no point at all",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:NodeName'}]}",
            "6:37: plugins.filter.enabled[0].name",
            "two plugins of one name, got scheduler.plugins.node_name:NodeName and acme:NodeName. Rename one"
            " of the classes",
            id="the name of one of ours",
        ),
        pytest.param(
            "filter: {disabled: [{name: NodePort}]}",
            "6:38: plugins.filter.disabled[0].name",
            "no such plugin, got 'NodePort'. Write '*' or one of: Annotation",
            id="a slip in what is disabled",
        ),
        pytest.param(
            "reserve: {enabled: [{name: 'acme:Slow'}]}",
            "6:38: plugins.reserve.enabled[0].name",
            "Slow is blocking, and reserve runs on the deciding thread. Enable it only at preBind and"
            " postBind, or make it without I/O of its own",
            id="one that blocks the deciding thread",
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: 'acme:Slow'}]}",
            "6:41: plugins.multiPoint.enabled[0].name",
            "Slow is blocking, and reserve runs on the deciding thread.",
            id="one that blocks everywhere",
        ),
        pytest.param(
            "queueSort: {disabled: [{name: '*'}]}",
            "5:7: ",
            "exactly one QueueSort plugin is needed, got none. Enable one, as PrioritySort",
            id="no order",
        ),
        pytest.param(
            "queueSort: {enabled: [{name: 'acme:Order'}]}",
            "5:7: ",
            "exactly one QueueSort plugin is needed, got PrioritySort and Order. Disable all but one",
            id="two orders",
        ),
        pytest.param(
            "multiPoint: {disabled: [{name: DefaultBinder}]}",
            "5:7: ",
            "a Bind plugin is needed, got none. Enable one, as DefaultBinder",
            id="nobody who binds",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:Raising'}]}",
            "6:37: plugins.filter.enabled[0].name",
            "Raising cannot be made: it raised RuntimeError: no licence. Mend it or its arguments",
            id="a constructor that raises",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:Renamed'}]}",
            "6:37: plugins.filter.enabled[0].name",
            "Renamed has the name 'other'. A plugin's name is that of its class: drop `name`",
            id="a name of its own",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:Eventful'}]}",
            "6:37: plugins.filter.enabled[0].name",
            "Eventful.events() must return EventInterest objects, got ['Node']. Mend it",
            id="events that are none",
        ),
        pytest.param(
            "score: {enabled: [{name: 'acme:Rack'}]}",
            "6:36: plugins.score.enabled[0].name",
            "Rack needs arguments: Object missing required field `labelKey`. Write them in pluginConfig;"
            " they are: labelKey, spread, zones",
            id="arguments that are missing",
        ),
        pytest.param(
            "score: {enabled: [{name: 'acme:Loose'}]}",
            "6:36: plugins.score.enabled[0].name",
            "Loose.Args lets unknown fields pass, so that slips would go unseen. Make it from"
            " scheduler.framework.args.PluginArgs",
            id="arguments that let slips pass",
        ),
        pytest.param(
            "score: {enabled: [{name: 'acme:Untyped'}]}",
            "6:36: plugins.score.enabled[0].name",
            "Untyped.Args must be a class made from PluginArgs, got <class 'dict'>.",
            id="arguments without a type",
        ),
    ],
)
def test_a_wrong_plugin_is_explained(acme: ThirdParty, plugins: str, place: str, expected: str) -> None:
    acme.write("needing", "import acme_missing\n")
    acme.write("failing", "1 / 0\n")
    acme.write("leaving", "raise SystemExit(0)\n")
    found = acme.problems(f"{PROFILE}      plugins: {{{plugins}}}\n")
    assert found[0 if len(found) == 1 else 1].startswith(f"{at(place)}: {expected}")


@pytest.mark.parametrize(
    ("config", "place", "expected"),
    [
        pytest.param(
            "{name: Rack, args: {label_key: x}}",
            "7:42: pluginConfig[0].args.label_key",
            "Object contains unknown field `label_key`. Arguments of Rack: labelKey, spread, zones",
            id="Python's spelling",
        ),
        pytest.param(
            "{name: Rack, args: {labelKey: 7}}",
            "7:42: pluginConfig[0].args.labelKey",
            "Expected `str`, got `int`. Arguments of Rack:",
            id="another type",
        ),
        pytest.param(
            "{name: Rack, args: {labelKey: x, zones: [a, {}]}}",
            "7:66: pluginConfig[0].args.zones[1]",
            "Expected `str`, got `object`.",
            id="another type within a list",
        ),
        pytest.param(
            "{name: Rack, args: {labelKey: x, spread: 10}}",
            "7:35: pluginConfig[0].args",
            "spread: got 10. Write at most 9.",
            id="a value that the plugin refuses",
        ),
        pytest.param(
            "{name: Rack}",
            "7:22: pluginConfig[0].args",
            "Object missing required field `labelKey`.",
            id="no arguments where some must be",
        ),
        pytest.param(
            "{name: Rack, args: {labelKey: x}}, {name: 'acme:Rack', args: {labelKey: x}}",
            "7:58: pluginConfig[1].name",
            "arguments of Rack stand here twice. Write them once",
            id="arguments twice",
        ),
        pytest.param(
            "{name: Rack, args: {labelKey: x}}, {name: ImageLocality, args: {a: 1}}",
            "7:79: pluginConfig[1].args",
            "ImageLocality takes no arguments. Drop them",
            id="arguments for one that takes none",
        ),
        pytest.param(
            "{name: Rack, args: {labelKey: x}}, {name: NodeResourcesFit, args: {scoringStrategy: {}}}",
            "7:82: pluginConfig[1].args",
            "NodeResourcesFitArgs of kube-scheduler: not built yet. Drop",
            id="arguments of kube-scheduler",
        ),
        pytest.param(
            "{name: Rack, args: {labelKey: x}}, {name: PodTopologySpread, args: {}}",
            "7:58: pluginConfig[1].name",
            "PodTopologySpread of kube-scheduler: not built yet. Drop it",
            id="arguments of what is not built",
        ),
        pytest.param(
            "{name: Rack, args: {labelKey: x}}, {name: 'acme:Both', args: {}}",
            "7:58: pluginConfig[1].name",
            "'acme:Both' is not enabled in this profile. Enable it, or",
            id="arguments of what is not enabled",
        ),
    ],
)
def test_wrong_arguments_are_explained(acme: ThirdParty, config: str, place: str, expected: str) -> None:
    block = f"{PROFILE}      plugins: {{score: {{enabled: [{{name: 'acme:Rack'}}]}}}}\n      pluginConfig: [{config}]\n"
    (found,) = acme.problems(block)
    assert found.startswith(f"{at(place)}: {expected}")


def test_two_packages_that_offer_one_name_are_both_named(acme: ThirdParty) -> None:
    offered = [*acme.offer("a", {"X": "acme:Both"}), *acme.offer("b", {"X": "acme:Rack"})]
    (found,) = acme.problems(PROFILE + "      plugins: {filter: {enabled: [{name: X}]}}\n", offered)
    assert found.endswith(
        "'X' is offered by several installed packages, got acme:Both and acme:Rack. Write one of these"
    )


def test_all_problems_of_all_profiles_come_at_once(acme: ThirdParty) -> None:
    found = acme.problems(
        """\
scheduler:
  profiles:
    - schedulerName: a
      plugins: {filter: {enabled: [{name: Nobody}, {name: "acme:Rack"}], disabled: [{name: Nothing}]}}
    - schedulerName: b
      plugins: {queueSort: {disabled: [{name: "*"}]}, bind: {disabled: [{name: "*"}]}}
"""
    )
    assert found[0] == "5 problems in the profiles:"
    assert [line.split(":")[0] for line in found[1:]] == ["6", "6", "6", "7", "7"]
