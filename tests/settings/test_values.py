"""The kinds of values that settings have: durations, names of clusters, addresses, URLs."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.settings.load import load
from scheduler.settings.sources import FlagValue
from tests.configuration import message, write


def test_a_leader_is_elected_with_the_defaults_of_kube_scheduler() -> None:
    election = load({}, {}).leader_election
    assert election.leader_elect
    assert (election.lease_duration_s, election.renew_deadline_s, election.retry_period_s) == (15.0, 10.0, 2.0)
    assert (election.resource_lock, election.resource_namespace, election.resource_name) == (
        "leases",
        "kube-system",
        "vane",
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15s", 15.0), ("1m30s", 90.0), ("1500ms", 1.5), ("1.5h", 5400.0), ("1h0m1.s", 3601.0), ("2000000us", 2.0)],
)
def test_durations_are_written_as_go_writes_them(text: str, seconds: float) -> None:
    flags: dict[str, FlagValue] = {
        "leader-elect-lease-duration": "2h",
        "leader-elect-renew-deadline": text,
        "leader-elect-retry-period": "1ms",
    }
    assert load(flags, {}).leader_election.renew_deadline_s == seconds


@pytest.mark.parametrize(
    "text", ["15", "15 s", "s", "1d", "0s", "-1s", "1s2", "1e3s", "0", "\N{DIGIT ONE}.\N{ARABIC-INDIC DIGIT ONE}s"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    assert message({"leader-elect-retry-period": text}) == (
        f"--leader-elect-retry-period: must be a duration with units as in 1m30s, above 0, got {text!r}."
        " Write for example 2s"
    )


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param(
            {"leader-elect-lease-duration": "10s"},
            "--leader-elect-lease-duration: the lease duration must be longer than the renew deadline,"
            " got 10s and 10s. Write for example 15s and 10s",
            id="a lease that ends before its leader gives up",
        ),
        pytest.param(
            {"leader-elect-retry-period": "9s"},
            "--leader-elect-retry-period: the renew deadline must be longer than 1.2 times the retry period,"
            " got 10s and 9s. Write for example 10s and 2s",
            id="a leader that gives up before its second attempt",
        ),
        pytest.param(
            {"leader-elect-lease-duration": "500ms"},
            "--leader-elect-lease-duration: must be a duration with units as in 1m30s, at least 1s, got '500ms'."
            " Write for example 15s",
            id="a lease too short for the API, which counts whole seconds",
        ),
        pytest.param(
            {"leader-elect-resource-lock": "endpoints"},
            "--leader-elect-resource-lock: must be leases, got 'endpoints'. Write for example leases",
            id="a lock of old",
        ),
        pytest.param(
            {"leader-elect-resource-namespace": "a.b"},
            "--leader-elect-resource-namespace: must be the name of a namespace (small letters, digits and -),"
            " got 'a.b'. Write for example kube-system",
            id="no namespace",
        ),
    ],
)
def test_a_wrong_election_is_explained(flags: dict[str, FlagValue], expected: str) -> None:
    assert message(flags) == expected


def test_nobody_is_elected_so_nothing_has_to_fit() -> None:
    assert not load({"leader-elect": "false", "leader-elect-lease-duration": "5s"}, {}).leader_election.leader_elect


def test_other_clusters_are_named(tmp_path: Path) -> None:
    config = write(tmp_path, "clusters: {edge-1: edge.kubeconfig, far: /far}\n")
    expected = (("edge-1", tmp_path / "edge.kubeconfig"), ("far", Path("/far")))
    assert load({"config": config}, {}).clusters == expected
    assert load({"cluster": ["edge-1=edge.kubeconfig", "far=/a=b"]}, {}).clusters == (
        ("edge-1", Path("edge.kubeconfig")),
        ("far", Path("/a=b")),
    )
    assert load({}, {"VANE_CLUSTER": "a=/a:b=/b"}).clusters == (("a", Path("/a")), ("b", Path("/b")))


@pytest.mark.parametrize("given", [["edge"], ["=x"], ["a="], ["A_b=x"], ["a=x", "a=y"]])
def test_a_wrong_cluster_is_explained(given: list[str]) -> None:
    assert message({"cluster": given}).startswith("--cluster: must be names of clusters (small letters, digits")


def test_a_wrong_cluster_of_the_file_has_a_place(tmp_path: Path) -> None:
    config = write(tmp_path, "clusters:\n  a_b: x\n")
    assert message({"config": config}).startswith(f"{config}:4:3: clusters: must be names of clusters")
    config = write(tmp_path, "clusters: [a]\nleaderElection: {leaseDuration: 15, leaderElects: true}\n")
    assert message({"config": config}).splitlines()[1:] == [
        f"{config}:3:11: clusters: must be names of clusters (small letters, digits, - and .), each once, with the"
        " paths of their kubeconfig files, got ['a']. Write for example edge=/etc/vane/edge.kubeconfig",
        f"{config}:4:33: leaderElection.leaseDuration: must be a duration with units as in 1m30s, at least 1s, got 15."
        " Write for example 15s",
        f"{config}:4:37: leaderElection: unknown field, got 'leaderElects' (did you mean \"leaderElect\"?)."
        " Write one of: leaderElect, leaseDuration, renewDeadline, retryPeriod, resourceLock, resourceName,"
        " resourceNamespace",
    ]


@pytest.mark.parametrize("value", ["1", "[a]", "true", "1.5"])
@pytest.mark.parametrize(
    ("group", "field", "expected"),
    [("serving", "bindAddress", "an IP address or localhost"), ("prometheus", "url", "an http or https URL")],
)
def test_an_address_is_text(tmp_path: Path, group: str, field: str, expected: str, value: str) -> None:
    config = write(tmp_path, f"{group}: {{{field}: {value}}}\n")
    assert f" {group}.{field}: must be {expected}" in message({"config": config})
