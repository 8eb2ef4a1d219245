"""Faults by which a hostile Pod, caller or night would reach others."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

IN_DEFENCES = (
    Mutant(
        bug="freed Pods come as fast although binds do not keep up",
        path="cluster/spread.py",
        old="self._are_many_ahead = n_ahead >= _MANY_AHEAD",
        new="self._are_many_ahead = False",
        tests=("cluster/test_queue_events.py",),
    ),
    Mutant(
        bug="a sample that has grown too old to be fresh keeps all its points for a moment more",
        path="signals/columns/freezer.py",
        old="math.ceil(now_s / _FADE_STEP_S)",
        new="math.floor(now_s / _FADE_STEP_S)",
        tests=("signals/columns/test_row_lags.py", "contracts/test_editions.py"),
    ),
    Mutant(
        bug="a nominated Pod like no placed one counts as the last group",
        path="framework/matching_pods.py",
        old="(self._n.shape[1] + len(strangers), pod)",
        new="(self._n.shape[1] - 1, pod)",
        tests=("framework/test_pod_groups.py",),
    ),
    Mutant(
        bug="a bad object is named again with every version",
        path="cluster/bad_input.py",
        old="        self._said_s[key] = now_s\n",
        new="",
        tests=("cluster/test_bad_input.py",),
    ),
    Mutant(
        bug="a connection without a request stays",
        path="serve/listener.py",
        old="        if not connection.has_asked:\n            connection.abort()\n",
        new="        if not connection.has_asked:\n            pass\n",
        tests=("serve/test_listener.py",),
    ),
    Mutant(
        bug="whoever holds most connections keeps them all",
        path="serve/listener.py",
        old="        first = min(of_greediest,",
        new="        first = min(self._connections,",
        tests=("serve/test_listener.py",),
    ),
    Mutant(
        bug="callers from loopback need no token wherever the process listens",
        path="serve/access.py",
        old="(self._is_on_loopback and is_loopback(remote))",
        new="is_loopback(remote)",
        tests=("serve/test_access.py",),
    ),
    Mutant(
        bug="a process with credentials loads modules from the folder it was started in",
        path="child_process.py",
        old='return [sys.executable, "-P", "-m", module, *arguments]',
        new='return [sys.executable, "-m", module, *arguments]',
        tests=("test_child_process.py",),
    ),
)
