"""Rule files that cannot be used, and a disk that takes no more logs."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.e2e.world import SIGNAL, refuse_above, rules
from tests.faults.bench.bench import Bench, Setting
from tests.faults.bench.churn import GATED
from tests.faults.bench.placing import Placing, measure_all_placed, small_pod
from tests.faults.bench.servers import NODES
from tests.faults.bench.told import metrics
from tests.faults.checker.evidence import UNPLACEABLE, Allowance
from tests.faults.row import Row
from tests.support.vane import VaneProcess

_VERDICT_S = 1.0
_SAID = "the rule files were not loaded"
_LOADED = "rules are in force"
_RELOADED = "vane_rules_last_reload_successful"


def _bytes(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        draft = path.with_suffix(".tmp")
        draft.write_bytes(content)
        draft.replace(path)

    return write


def _text(content: str) -> Callable[[Path], None]:
    return _bytes(content.encode())


def _with(old: str, new: str) -> Callable[[Path], None]:
    """Return the good rules with one part of them replaced."""
    good = rules(refuse_above(0.95))
    assert old in good
    return _text(good.replace(old, new))


def _remove(path: Path) -> None:
    path.unlink()


def _link_to_nothing(path: Path) -> None:
    draft = path.with_suffix(".link")
    draft.symlink_to("..data/rules.yaml")
    draft.replace(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


_BOMB = "a: &a [x, x]\n" + "".join(
    f"{c}: &{c} [*{b}, *{b}, *{b}, *{b}]\n" for b, c in zip("abcdefgh", "bcdefghi", strict=True)
)

POISON: Mapping[str, Callable[[Path], None]] = {
    "no YAML": _text("apiVersion: vane.dev/v1\nkind: [Rules\n"),
    "a tab": _text("apiVersion: vane.dev/v1\n\tkind: Rules\n"),
    "a bomb of aliases": _text(_BOMB),
    "50 MiB": _bytes(b"# " + b"x" * (50 << 20)),
    "a key twice": _text(SIGNAL + "  node_cpu: {expr: up, by: node}\n"),
    "an unknown field": _with("signal: node_cpu,", "signal: node_cpu, sgnal: x,"),
    "weight NaN": _with("filter: {max: 0.95}", "score: {best: 0, worst: 1}, weight: .nan"),
    "weight 1e9": _with("filter: {max: 0.95}", "score: {best: 0, worst: 1}, weight: 1000000000"),
    "no PromQL": _with("expr: clamp_min(", "expr: clamp_min(("),
    "a text for PromQL": _with("expr: clamp_min(", "expr: '\"text\"' # "),
    "an unknown signal": _with("signal: node_cpu,", "signal: nodecpu,"),
    "an interval of nothing": _with("interval: 1s", "interval: 0s"),
    "nothing": _bytes(b""),
    "zeros": _bytes(bytes(4096)),
    "no UTF-8": _bytes(b"apiVersion: vane.dev/v1\nkind: \xff\xfe\n"),
    "depth 10,000": _text("[" * 10_000),
    "101 rules": _text(rules(*(refuse_above(0.95, f"rule-{i}") for i in range(101)))),
    "no file": _remove,
    "a link to nothing": _link_to_nothing,
    "an empty folder": _folder,
}


def _until_said(bench: Bench, vane: VaneProcess, words: str, do: Callable[[], None]) -> float:
    """Do something, and wait until the log has these words once more; return the seconds that took."""
    n_said = vane.process.log_text().count(words)
    do()
    begun_s = time.monotonic()
    bench.until(lambda: vane.process.log_text().count(words) > n_said, 20.0, repr(words))
    return time.monotonic() - begun_s


def _put_back(bench: Bench) -> None:
    if bench.rule_file.is_dir() and not bench.rule_file.is_symlink():
        bench.rule_file.rmdir()
    bench.churn.edit_rules()


def poisoned(bench: Bench) -> None:
    """The rule file becomes one that cannot be used, in twenty ways; good ones come between."""
    vane, placing = bench.leader().vane, Placing(bench)
    for name in NODES:
        bench.servers.exporter.set_gauge(name, "node_load15", 1.0)
    try:
        bench.until(lambda: metrics(vane).get('vane_rule_refused_nodes{rule="gate"}') == len(NODES), 20.0, "the gate")
        labels = {**GATED, UNPLACEABLE: "yes"}
        bench.api.post("/api/v1/namespaces/default/pods", small_pod("gated", labels=labels))
        n_rules, took_s, untold, changed = metrics(vane)["vane_rules_loaded"], [], [], []
        chosen = list(POISON.items())[:: int(bench.seconds(1, 3))]
        for name, write in chosen:
            took_s.append(_until_said(bench, vane, _SAID, lambda write=write: write(bench.rule_file)))  # type: ignore[misc]
            bench.last(1.1)  # a page may be a second old
            said = metrics(vane)
            untold += [name] if said.get(_RELOADED) != 0 else []
            changed += [name] if said["vane_rules_loaded"] != n_rules else []
            _until_said(bench, vane, _LOADED, lambda: _put_back(bench))
        bench.until(lambda: metrics(vane).get(_RELOADED) == 1, 10.0, "good rules")
        bench.figure("files that cannot be used", len(chosen), at_least=7)
        bench.figure("log says so after, longest, s", max(took_s), at_most=_VERDICT_S)
        bench.figure("not told by the metric", len(untold), at_most=0)
        bench.figure("that changed the rules in force", len(changed), at_most=0)
        bench.figure("Pods that passed a rule meanwhile", int(bench.placed("gated")), at_most=0)
        events = bench.api.events(reason="RulesReloadFailed", namespace="kube-system")
        bench.figure("Events of it", len(events), at_least=1, at_most=2 * bench.setting.n_replicas)
        bench.figure("processes that ended", len(bench.replicas.ended), at_most=0)
    finally:
        for name in NODES:
            bench.servers.exporter.set_gauge(name, "node_load15", 0.0)
    measure_all_placed(bench, placing.names())


# A full disk


def full_disk(bench: Bench) -> None:
    """No byte is free where the logs lie, and an edit left an empty rule file. The leader is told to end so."""
    disk, placing, leader = bench.disk, Placing(bench), bench.leader()
    assert disk is not None
    n_free = disk.fill()
    begun_s = time.monotonic()
    bench.rule_file.open("wb").close()  # as an editor begins that then finds no room
    bench.last(bench.seconds(60, 12))
    bench.figure("bytes that were free", n_free, at_least=1)
    bench.figure("full for, s", time.monotonic() - begun_s)
    disk.fill()
    bench.figure("bytes free now", disk.n_free_bytes, at_most=0)
    said = metrics(leader.vane)
    bench.figure("rules in force", said["vane_rules_loaded"], at_least=3)
    bench.figure("told as loaded", said[_RELOADED], at_most=0)
    leader.is_kept_down = True
    leader.vane.process.signal(signal.SIGTERM)
    bench.until(lambda: leader.vane.process.returncode is not None, 20.0, "the leader's end")
    code = leader.vane.process.returncode
    bench.figure("exit code after SIGTERM", -1 if code is None else code, at_least=0, at_most=0)
    bench.measure_recovery()
    disk.free()
    leader.is_kept_down = False
    bench.churn.edit_rules()
    other = next(one for one in bench.replicas.all if one is not leader)
    n_bytes = other.vane.process.log.stat().st_size
    bench.until(lambda: metrics(other.vane).get(_RELOADED) == 1, 10.0, "good rules")
    bench.until(lambda: other.vane.process.log.stat().st_size > n_bytes, 10.0, "lines in the log again")
    measure_all_placed(bench, placing.names())


ROWS = (
    # The row's own edits are the only ones.
    Row("F22", "rule files that cannot be used", poisoned, Setting(node_every_s=3600.0)),
    Row(
        "disk",
        "the disk with the logs is full, an edit of the rules left an empty file",
        full_disk,
        Setting(
            disk_bytes=8 << 20,
            node_every_s=3600.0,
            flags=("--verbosity", "4"),
            exits=frozenset({0}),
            allowance=Allowance(network_s=1.0),
        ),
    ),
)
