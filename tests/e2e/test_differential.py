"""kube-scheduler and Vane beside the same API server: the same Pods, one at a time, each to both from the same state.

`DIFFERENTIAL=full pytest tests/e2e/test_differential.py --log-cli-level INFO` submits 300 Pods on 100 nodes with each
of three seeds and tells what was compared; by default it is a small one.
"""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import StartVane
from tests.e2e.differential.features import FEATURES
from tests.e2e.differential.judging import Judge
from tests.e2e.differential.standing import Cluster
from tests.e2e.differential.turns import REFERENCE, Turns
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi

log = logging.getLogger(__name__)

IS_FULL = os.environ.get("DIFFERENTIAL") == "full"
SEEDS = (1, 2, 3) if IS_FULL else (7,)
N_NODES, N_PODS = (100, 300) if IS_FULL else (40, 60)

KUBE_SCHEDULER = {"percentageOfNodesToScore": 100, "profiles": [{"schedulerName": REFERENCE}]}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", SEEDS)
def test_both_do_the_same_with_each_pod(
    api: KubeApi, control_plane: ControlPlane, start_vane: StartVane, oracle: Path, tmp_path: Path, seed: int
) -> None:
    began_s = time.monotonic()
    cluster = Cluster(api, seed, N_NODES, N_PODS)
    stood_s = time.monotonic()
    judge = Judge(oracle, tmp_path)
    vane = start_vane()
    with control_plane.start_kube_scheduler(KUBE_SCHEDULER) as reference:
        turns = Turns(api, cluster, reference, vane)
        turns.wait_until_both_know()
        for number in range(N_PODS):
            judge.judge(turns.take(number))
        turns.wait_until_both_know()

    findings = judge.findings
    log.info(
        "seed %d: set up in %.0f s, %d Pods in %.0f s", seed, stood_s - began_s, N_PODS, time.monotonic() - stood_s
    )
    for line in (*findings.lines(), *(f"drawn, but refused: {n} {why}" for why, n in cluster.refused.items())):
        log.info("seed %d: %s", seed, line)
    assert not findings.differences, "\n\n".join(findings.differences)
    assert set(FEATURES) - findings.features.keys() == set()
