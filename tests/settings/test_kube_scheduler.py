"""The shape of the `scheduler` block; what its names stand for is tested in tests/app/test_profiles.py."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from scheduler.framework.profile import POINTS as BUILT_POINTS
from scheduler.model.rules import MAX_WEIGHT as RULES_MAX_WEIGHT
from scheduler.settings.load import load
from scheduler.settings.scheduler import MAX_WEIGHT, POINTS, PluginSet, SchedulerSettings
from tests.configuration import message, write

BLOCK = """\
schedulerName: gpu
scheduler:
  apiVersion: kubescheduler.config.k8s.io/v1
  kind: KubeSchedulerConfiguration
  profiles:
    - schedulerName: vane
      plugins:
        multiPoint:
          enabled: [{name: "acme.plugins:Rack", weight: 5}]
        score:
          disabled: [{name: "*"}]
          enabled:
            - name: ImageLocality
            - {name: Other, weight: 100}
      pluginConfig:
        - name: Rack
          args: {label_key: rack, deep: {list: [1, two]}}
    - schedulerName: gpu
"""


def test_points_and_weights_are_those_of_the_framework() -> None:
    assert list(BUILT_POINTS) == list(POINTS)
    assert MAX_WEIGHT == RULES_MAX_WEIGHT


def test_a_block_is_read_with_its_places(tmp_path: Path) -> None:
    config = write(tmp_path, BLOCK)
    first, second = load({"config": config}, {}).scheduler.profiles

    assert (first.scheduler_name, second.scheduler_name) == ("vane", "gpu")
    score = first.at("score")
    assert [(line.name, line.weight) for line in score.enabled] == [("ImageLocality", None), ("Other", 100)]
    assert [line.name for line in score.disabled] == ["*"]
    assert score.enabled[1].place == f"{config}:16:22: scheduler.profiles[0].plugins.score.enabled[1].name"
    assert [(line.name, line.weight) for line in first.at("multiPoint").enabled] == [("acme.plugins:Rack", 5)]
    assert first.at("filter") == PluginSet()
    (rack,) = first.plugin_config
    assert (rack.name, rack.args) == ("Rack", {"label_key": "rack", "deep": {"list": [1, "two"]}})
    assert rack.places.of(("deep", "list", 1)) == (
        f"{config}:19:52: scheduler.profiles[0].pluginConfig[0].args.deep.list[1]"
    )
    assert second.place == f"{config}:20:7: scheduler.profiles[1]"


def test_the_block_goes_to_other_processes_with_the_settings(tmp_path: Path) -> None:
    settings = load({"config": write(tmp_path, BLOCK)}, {})
    copied = pickle.loads(pickle.dumps(settings))
    assert copied == settings
    assert hash(copied) == hash(settings)
    assert (
        copied.scheduler.profiles[0].plugin_config[0].places == settings.scheduler.profiles[0].plugin_config[0].places
    )


@pytest.mark.parametrize("block", ["scheduler: {}\n", "scheduler: {profiles: []}\n", ""])
def test_no_profile_is_the_default_one(tmp_path: Path, block: str) -> None:
    settings = load({"config": write(tmp_path, block)}, {})
    assert settings.scheduler == SchedulerSettings()
    assert settings.scheduler_name == "vane"


def test_a_sole_profile_may_leave_its_name_to_the_settings(tmp_path: Path) -> None:
    config = write(tmp_path, "scheduler: {profiles: [{}]}\n")
    assert load({"config": config}, {}).scheduler_name == "vane"
    settings = load({"config": config, "scheduler-name": "x"}, {})
    assert (settings.scheduler_name, settings.scheduler.profiles[0].scheduler_name) == ("x", "")


def test_profiles_name_the_scheduler_unless_the_settings_do(tmp_path: Path) -> None:
    config = write(tmp_path, "scheduler: {profiles: [{schedulerName: a}, {schedulerName: b}]}\n")
    assert load({"config": config}, {}).scheduler_name == "a"
    assert load({"config": config}, {"VANE_SCHEDULER_NAME": "b"}).scheduler_name == "b"
    assert message({"config": config, "scheduler-name": "c"}) == (
        "--scheduler-name: no profile has this name, got 'c'. Write the name of a profile (a, b), or drop it"
    )


PROFILE = "scheduler: {profiles: [{schedulerName: v, %s}]}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "scheduler: []\n",
            "3:12: scheduler: must be a mapping, got a list. Write fields: profiles, apiVersion, kind",
            id="no mapping",
        ),
        pytest.param("scheduler:\n", "3:11: scheduler: must be a mapping, got nothing.", id="nothing"),
        pytest.param(
            "scheduler: {kind: Pod}\n",
            "3:19: scheduler.kind: not known, got 'Pod'. Write `kind: KubeSchedulerConfiguration`",
            id="another kind",
        ),
        pytest.param(
            "scheduler: {percentageOfNodesToScore: 101}\n",
            "3:39: scheduler.percentageOfNodesToScore: must be a whole number from 0 to 100, got 101.",
            id="a percentage beyond 100",
        ),
        pytest.param(
            "scheduler: {extenders: [{urlPrefix: 'http://x'}]}\n",
            "3:24: scheduler.extenders: HTTP extenders of kube-scheduler: not built yet. Drop them",
            id="extenders",
        ),
        pytest.param(
            "scheduler: {leaderElection: {leaderElct: true}}\n",
            "3:30: scheduler.leaderElection: unknown field, got 'leaderElct' (did you mean \"leaderElect\"?).",
            id="a slip in the election",
        ),
        pytest.param(
            "scheduler: {leaderElection: {leaseDuration: 5}}\n",
            "3:45: scheduler.leaderElection.leaseDuration: must be a duration with units as in 1m30s, at least 1s,",
            id="a duration without a unit",
        ),
        pytest.param(
            "scheduler: {leaderElection: {leaseDuration: 8s}}\n",
            "3:45: scheduler.leaderElection.leaseDuration: the lease duration must be longer than the renew deadline,",
            id="a lease shorter than its renewal",
        ),
        pytest.param(
            "kubeconfig: /a\nscheduler: {clientConnection: {kubeconfig: /b}}\n",
            "3:13: kubeconfig: is also set in the block scheduler. Write it once",
            id="a setting in both places",
        ),
        pytest.param(
            "scheduler: {healthzBindAddress: 0.0.0.0}\n",
            "3:13: scheduler.healthzBindAddress: no such field in v1, as in kube-scheduler. Write --bind-address and",
            id="a field of an older version",
        ),
        pytest.param(
            "scheduler: {podInitialBackoffSeconds: 20}\n",
            "3:39: scheduler.podInitialBackoffSeconds: the longest backoff must be the first at least, got 10 s and",
            id="a first backoff beyond the longest",
        ),
        pytest.param(
            "scheduler: {podMaxBackoffSeconds: 0}\n",
            "3:35: scheduler.podMaxBackoffSeconds: must be a whole number from 1 on, got 0. Write another, or drop it",
            id="no backoff",
        ),
        pytest.param(
            "scheduler: {rules: [a]}\n",
            "3:13: scheduler.rules: a setting of Vane's own, got 'rules'. Write it at the top of a Vane",
            id="a setting of Vane's own",
        ),
        *(
            pytest.param(f"scheduler: {{{text}}}\n", f"3:{column}: scheduler.{expected}", id=text)
            for text, column, expected in [
                ("clientConnection: {qps: true}", 37, "clientConnection.qps: must be a number, got 'true'. Write"),
                ("clientConnection: {contentType: 5}", 45, "clientConnection.contentType: must be text, got 5. Write"),
                ("enableProfiling: 1", 30, "enableProfiling: must be true or false, got 1. Write one of them, or"),
                ("parallelism: true", 26, "parallelism: must be a whole number from 1 to 2147483647, got 'true'."),
                ("parallelism: 4.5", 26, "parallelism: must be a whole number from 1 to 2147483647, got 4.5."),
                (
                    "leaderElection: {retryPeriod: ~}",
                    43,
                    "leaderElection.retryPeriod: must be a duration with units as",
                ),
                (
                    "apiVersion: v2",
                    25,
                    "apiVersion: not known, got 'v2'. Write `apiVersion: kubescheduler.config.k8s.io/v1`",
                ),
            ]
        ),
        pytest.param(
            "scheduler: {profile: []}\n",
            "3:13: scheduler: unknown field, got 'profile' (did you mean \"profiles\"?). Write one of: profiles,",
            id="a slip",
        ),
        pytest.param(
            "scheduler: {profiles: {}}\n",
            "3:23: scheduler.profiles: must be a list, got a mapping. Write its items, or drop it",
            id="no list",
        ),
        pytest.param(
            "scheduler: {profiles: [vane]}\n",
            "3:24: scheduler.profiles[0]: must be a mapping, got 'vane'.",
            id="a name for a profile",
        ),
        pytest.param(
            "scheduler: {profiles: [{schedulerName: a}, {schedulerName: a}]}\n",
            "3:60: scheduler.profiles[1].schedulerName: 'a' is also the name of profiles[0]. Write another",
            id="a name twice",
        ),
        pytest.param(
            "scheduler: {profiles: [{schedulerName: a}, {}]}\n",
            "3:44: scheduler.profiles[1].schedulerName: must be 1 to 253 characters without spaces, got nothing."
            " Write for example vane",
            id="no name among several",
        ),
        pytest.param(
            "scheduler: {profiles: [{schedulerName: ''}]}\n",
            "3:40: scheduler.profiles[0].schedulerName: must be 1 to 253 characters without spaces, got ''.",
            id="an empty name",
        ),
        pytest.param(
            PROFILE % "percentageOfNodesToScore: -1",
            "3:69: scheduler.profiles[0].percentageOfNodesToScore: must be a whole number from 0 to 100, got -1.",
            id="a negative percentage",
        ),
        pytest.param(
            PROFILE % "plugins: {normalizeScore: {}}",
            "3:53: scheduler.profiles[0].plugins.normalizeScore: belongs to score, as in kube-scheduler. Write score",
            id="the point that is part of another",
        ),
        pytest.param(
            PROFILE % "plugins: {mutate: {}}",
            "3:53: scheduler.profiles[0].plugins: unknown field, got 'mutate'. Write one of: multiPoint,"
            " preEnqueue, queueSort,",
            id="no point",
        ),
        pytest.param(
            PROFILE % "plugins: {podGroupPostFilter: {enabled: [{name: DynamicResources}]}}",
            "3:53: scheduler.profiles[0].plugins.podGroupPostFilter: not built yet. Drop it",
            id="a point that is not built",
        ),
        pytest.param(
            PROFILE % "plugins: {filter: {enabled: [NodeName]}}",
            "3:72: scheduler.profiles[0].plugins.filter.enabled[0]: must be a mapping, got 'NodeName'."
            " Write fields: name, weight",
            id="a name for an item",
        ),
        pytest.param(
            PROFILE % "plugins: {score: {enabled: [{weight: 1}]}}",
            "3:71: scheduler.profiles[0].plugins.score.enabled[0].name: must be 1 to 253 characters without spaces,"
            " got nothing. Write for example ImageLocality",
            id="an item without a name",
        ),
        pytest.param(
            PROFILE % 'plugins: {score: {enabled: [{name: "*"}]}}',
            "3:78: scheduler.profiles[0].plugins.score.enabled[0].name: '*' disables, it enables nothing.",
            id="all of them enabled",
        ),
        *(
            pytest.param(
                PROFILE % f"plugins: {{score: {{enabled: [{{name: A, weight: {weight}}}]}}}}",
                "3:89: scheduler.profiles[0].plugins.score.enabled[0].weight: must be a whole number from 1 to 100, got"
                f" {shown}. Write for example 2",
                id=f"weight {weight}",
            )
            for weight, shown in [
                ("101", "101"),
                ("-1", "-1"),
                ("1.5", "1.5"),
                ("true", "'true'"),
            ]
        ),
        pytest.param(
            PROFILE % "pluginConfig: [{name: A, args: [1]}]",
            "3:74: scheduler.profiles[0].pluginConfig[0].args: must be a mapping, got a list.",
            id="arguments that are no mapping",
        ),
        pytest.param(
            PROFILE % "pluginConfig: [{args: {}}]",
            "3:58: scheduler.profiles[0].pluginConfig[0].name: must be 1 to 253 characters without spaces, got",
            id="arguments of nobody",
        ),
        pytest.param(
            PROFILE % "pluginConfig: [{name: A, args: {a: 1, a: 2}}]",
            "3:81: 'a' is given twice, first in line 3. Keep one of the two",
            id="an argument twice",
        ),
    ],
)
def test_a_wrong_block_is_explained(tmp_path: Path, text: str, expected: str) -> None:
    config = write(tmp_path, text)
    assert message({"config": config}).startswith(f"{config}:{expected}")


def test_all_problems_of_the_block_come_at_once_with_those_of_the_file(tmp_path: Path) -> None:
    config = write(
        tmp_path,
        "logging: {verbosity: 11}\nscheduler:\n  parallelism: 0\n  profiles: [{plugins: {bind: 1}, pluginConfig: 2}]\n",
    )
    found = message({"config": config}).splitlines()
    assert found[0] == "4 problems in the settings:"
    assert [line.removeprefix(config).split(":")[1] for line in found[1:]] == ["6", "6", "5", "3"]


KUBE_HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
SETTINGS = """\
clientConnection: {kubeconfig: conf/kube, qps: 1000, burst: 1000}
leaderElection: {leaderElect: false, leaseDuration: 30s, renewDeadline: 0s, resourceName: "", resourceLock: leases}
podInitialBackoffSeconds: 3
podMaxBackoffSeconds: 60
parallelism: 4
percentageOfNodesToScore: 50
extenders: []
profiles: [{schedulerName: gpu, plugins: {score: {enabled: [{name: ImageLocality, weight: 0}]}, permit: ~}}]
"""


def in_block(text: str) -> str:
    return "scheduler:\n" + "".join(f"  {line}\n" for line in text.splitlines())


def test_a_file_of_kube_scheduler_is_read_as_the_block_is(tmp_path: Path) -> None:
    (tmp_path / "block").mkdir()
    bare = load({"config": write(tmp_path, SETTINGS, KUBE_HEAD)}, {})
    block = load({"config": write(tmp_path / "block", in_block(KUBE_HEAD + SETTINGS))}, {})
    for settings in (bare, block):
        assert settings.scheduler_name == "gpu"
        assert settings.kubeconfig == Path("conf/kube")
        election = settings.leader_election
        assert (election.leader_elect, election.lease_duration_s, election.renew_deadline_s) == (False, 30.0, 10.0)
        assert (election.resource_name, election.resource_namespace) == ("vane", "kube-system")
        assert (settings.scheduler.initial_backoff_s, settings.scheduler.max_backoff_s) == (3.0, 60.0)
        assert [line.weight for line in settings.scheduler.profiles[0].at("score").enabled] == [None]
    assert [notice.split(": ")[1] for notice in bare.scheduler.notices] == [
        "percentageOfNodesToScore",
        "parallelism",
        "clientConnection.qps",
        "clientConnection.burst",
    ]
    assert block.scheduler.notices[1].endswith(
        "vane.yaml:10:16: scheduler.parallelism: has no effect: one thread decides for all nodes at once"
    )


def test_what_is_as_in_kube_scheduler_needs_no_notice(tmp_path: Path) -> None:
    text = "parallelism: 16\npercentageOfNodesToScore: 0\nclientConnection: {qps: 50, burst: 100}\nprofiles: ~\n"
    settings = load({"config": write(tmp_path, text, KUBE_HEAD)}, {})
    assert settings.scheduler == SchedulerSettings()


def test_the_first_backoff_may_be_the_longest(tmp_path: Path) -> None:
    config = write(tmp_path, "scheduler: {podInitialBackoffSeconds: 10}\n")
    assert load({"config": config}, {}).scheduler.initial_backoff_s == 10.0


def test_flags_and_variables_win_over_a_file_of_kube_scheduler(tmp_path: Path) -> None:
    config = write(tmp_path, SETTINGS.replace("gpu", "vane"), KUBE_HEAD)
    settings = load({"config": config, "kubeconfig": "/k"}, {"VANE_LEADER_ELECT": "true"})
    assert (settings.kubeconfig, settings.leader_election.leader_elect) == (Path("/k"), True)


def test_problems_of_a_file_of_kube_scheduler_have_their_places(tmp_path: Path) -> None:
    text = "clientConnection: {kubeconfig: [1]}\nleaderElection: {leaderElect: 1}\nrules: []\n"
    config = write(tmp_path, text, KUBE_HEAD)
    found = message({"config": config}).splitlines()
    assert sorted(line.removeprefix(config)[:40] for line in found[1:]) == [
        ":3:32: clientConnection.kubeconfig: must",
        ":4:31: leaderElection.leaderElect: must ",
        ":5:1: rules: a setting of Vane's own, go",
    ]
