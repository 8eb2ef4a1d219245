"""What a user reads of a wrong profile: file, line, column, path, what was found, what to write instead."""

from __future__ import annotations

import pytest

from tests.app.third_party import PROFILE, ThirdParty


def at(place: str) -> str:
    """Write out `line:column: path` with the way to the only profile."""
    spot, _, path = place.partition(": ")
    return f"{spot}: scheduler.profiles[0]{'.' if path else ''}{path}"


@pytest.mark.parametrize(
    ("plugins", "place", "expected"),
    [
        pytest.param(
            "score: {enabled: [{name: ImageLocalty}]}",
            "6:42: plugins.score.enabled[0].name",
            "no such plugin, got 'ImageLocalty' (did you mean \"ImageLocality\"?). Write a name of Vane's, one that an"
            " installed package offers in the entry point group vane.plugins, or an import path as"
            " package.module:Class",
            id="a slip",
        ),
        pytest.param(
            "filter: {enabled: [{name: DynamicResources}]}",
            "6:43: plugins.filter.enabled[0].name",
            "DynamicResources of kube-scheduler: not built yet. Drop it",
            id="a plugin that is not built",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme_nowhere.plugins:Rack'}]}",
            "6:43: plugins.filter.enabled[0].name",
            "cannot be imported: no module named 'acme_nowhere'. Install its package, or add its folder to PYTHONPATH",
            id="a module that is missing",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'needing:Rack'}]}",
            "6:43: plugins.filter.enabled[0].name",
            "cannot be imported: needing lacks a module: No module named 'acme_missing'. Install it",
            id="a module whose own import is missing",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'failing:Rack'}]}",
            "6:43: plugins.filter.enabled[0].name",
            "cannot be imported: failing raised ZeroDivisionError: division by zero. Fix it",
            id="a module that raises",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'leaving:Rack'}]}",
            "6:43: plugins.filter.enabled[0].name",
            "cannot be imported: leaving raised SystemExit: 0. Fix it",
            id="a module that ends the process",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:Bot'}]}",
            "6:43: plugins.filter.enabled[0].name",
            "cannot be imported: module acme has no 'Bot' (did you mean \"Both\"?). Write its class",
            id="a class that is missing",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:'}]}",
            "6:43: plugins.filter.enabled[0].name",
            "must be an import path, got 'acme:'. Write package.module:Class",
            id="half a path",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:RackArgs'}]}",
            "6:43: plugins.filter.enabled[0].name",
            "'acme:RackArgs' is not a plugin, got the class RackArgs. Write a class derived from"
            " scheduler.framework.plugin",
            id="another class",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:no_plugin'}]}",
            "6:43: plugins.filter.enabled[0].name",
            "'acme:no_plugin' is not a plugin, got an object of class Both. Write a class derived from"
            " scheduler.framework.plugin",
            id="an object",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:Half'}]}",
            "6:43: plugins.filter.enabled[0].name",
            "Half lacks filter, score. Write the methods of its extension points",
            id="methods that are missing",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:Both'}, {name: NodePorts}, {name: 'acme:Both'}]}",
            "6:83: plugins.filter.enabled[2].name",
            "Both is enabled twice at filter. Name it once",
            id="a name twice at a point",
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: NodePorts}, {name: NodePorts}]}",
            "6:66: plugins.multiPoint.enabled[1].name",
            "NodePorts is enabled twice at multiPoint. Name it once",
            id="a name twice at all points",
        ),
        pytest.param(
            "bind: {enabled: [{name: 'acme:Both'}]}",
            "6:41: plugins.bind.enabled[0].name",
            "Both does not implement bind. Drop it there; its points: filter, score",
            id="a point that it lacks",
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: 'acme:Pointless'}]}",
            "6:47: plugins.multiPoint.enabled[0].name",
            "Pointless does not implement any extension point. Drop it there; its points: none",
            id="no point at all",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:NodeName'}]}",
            "6:43: plugins.filter.enabled[0].name",
            "two plugins with the same name, got scheduler.plugins.node_name:NodeName and acme:NodeName. Rename one"
            " of the classes",
            id="the name of one of ours",
        ),
        pytest.param(
            "filter: {disabled: [{name: NodePort}]}",
            "6:44: plugins.filter.disabled[0].name",
            "no such plugin, got 'NodePort'. Write '*' or one of: Annotation",
            id="a slip in what is disabled",
        ),
        pytest.param(
            "reserve: {enabled: [{name: 'acme:Slow'}]}",
            "6:44: plugins.reserve.enabled[0].name",
            "Slow is blocking, and reserve runs on the deciding thread. Enable it only at preBind and"
            " postBind, or make it without I/O of its own",
            id="one that blocks the deciding thread",
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: 'acme:Slow'}]}",
            "6:47: plugins.multiPoint.enabled[0].name",
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
            "6:43: plugins.filter.enabled[0].name",
            "Raising cannot be created: it raised RuntimeError: no licence. Fix it or its arguments",
            id="a constructor that raises",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:Renamed'}]}",
            "6:43: plugins.filter.enabled[0].name",
            "Renamed has the name 'other'. A plugin's name is that of its class: drop `name`",
            id="a name of its own",
        ),
        pytest.param(
            "filter: {enabled: [{name: 'acme:Eventful'}]}",
            "6:43: plugins.filter.enabled[0].name",
            "Eventful.events() must return EventInterest objects, got ['Node']. Fix it",
            id="events that are none",
        ),
        pytest.param(
            "score: {enabled: [{name: 'acme:Rack'}]}",
            "6:42: plugins.score.enabled[0].name",
            "Rack needs arguments: Object missing required field `labelKey`. Write them in pluginConfig;"
            " they are: labelKey, spread, zones",
            id="arguments that are missing",
        ),
        pytest.param(
            "score: {enabled: [{name: 'acme:Loose'}]}",
            "6:42: plugins.score.enabled[0].name",
            "Loose.Args accepts unknown fields, so typing errors would go unnoticed. Derive it from"
            " scheduler.framework.args.PluginArgs",
            id="arguments that let slips pass",
        ),
        pytest.param(
            "score: {enabled: [{name: 'acme:Untyped'}]}",
            "6:42: plugins.score.enabled[0].name",
            "Untyped.Args must be a class derived from PluginArgs, got <class 'dict'>.",
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
            "7:42: pluginConfig[0].args",
            "unknown field, got 'label_key' (did you mean \"labelKey\"?). Arguments of Rack: labelKey, spread, zones",
            id="Python's spelling",
        ),
        pytest.param(
            "{name: Rack, args: {labelKey: 7}}",
            "7:52: pluginConfig[0].args.labelKey",
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
            "7:41: pluginConfig[0].args",
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
            "7:64: pluginConfig[1].name",
            "arguments of Rack are given twice. Write them once",
            id="arguments twice",
        ),
        pytest.param(
            "{name: Rack, args: {labelKey: x}}, {name: ImageLocality, args: {a: 1}}",
            "7:85: pluginConfig[1].args",
            "ImageLocality takes no arguments. Drop them",
            id="arguments for one that takes none",
        ),
        pytest.param(
            "{name: Rack, args: {labelKey: x}}, {name: NodeResourcesFit, args: {scoringStrategy: {}}}",
            "7:106: pluginConfig[1].args.scoringStrategy.type",
            "must be one of LeastAllocated, MostAllocated, RequestedToCapacityRatio, got ''. Write one of them",
            id="arguments of kube-scheduler",
        ),
        pytest.param(
            "{name: Rack, args: {labelKey: x}}, {name: DynamicResources, args: {}}",
            "7:64: pluginConfig[1].name",
            "DynamicResources of kube-scheduler: not built yet. Drop it",
            id="arguments of what is not built",
        ),
        pytest.param(
            "{name: Rack, args: {labelKey: x}}, {name: 'acme:Both', args: {}}",
            "7:64: pluginConfig[1].name",
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
