"""What proves who we are is replaced: the token, our serving certificate, the API server's authority."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.faults.bench.bench import Bench, Setting
from tests.faults.bench.page_askers import Askers
from tests.faults.bench.placing import Placing, measure_all_placed
from tests.faults.bench.told import metrics, summed
from tests.faults.checker.evidence import Allowance
from tests.faults.proxy.http import Answer, Fault
from tests.faults.row import Row
from tests.support.pki import CertificateAuthority

_UNAUTHORIZED = Answer(
    401, body=b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}'
)
_SHOWN_S = 60.0
"""Within this a new serving certificate is to be shown."""


def _swap(folder: Path, version: str, files: Mapping[str, bytes]) -> None:
    """Put files in place as a kubelet does: a new folder, and the one link to it replaced."""
    (folder / version).mkdir()
    for name, content in files.items():
        (folder / version / name).write_bytes(content)
    draft = folder / "..draft"
    draft.symlink_to(version)
    draft.replace(folder / "..data")


def _link(path: Path, target: Path) -> None:
    """Let a path be a link from now on."""
    draft = path.with_suffix(".link")
    draft.symlink_to(target)
    draft.replace(path)


def _n_errors(bench: Bench) -> float:
    said = [metrics(one.vane) for one in bench.replicas.all]
    return sum(summed(series, "scheduler_schedule_attempts_total", 'result="error"') for series in said)


def token_rotates(bench: Bench) -> None:
    """The token file is swapped again and again; a moment later the old token is answered 401."""
    front, path = bench.servers.front, bench.replicas.token_file
    assert path is not None
    vane = bench.servers.control_plane.token("vane")
    front.token_of = lambda _token: vane
    valid = {vane}
    front.add(Fault(lambda call: call.token not in valid, answer=_UNAUTHORIZED))
    holder, placing, most = bench.replicas.holder, Placing(bench), 0
    volume = bench.folder / "token-volume"
    volume.mkdir()
    for i in range(int(bench.seconds(10, 3))):
        token = f"rotated-{i}"
        _swap(volume, f"..v{i}", {"token": token.encode()})
        if i == 0:
            _link(path, volume / "..data" / "token")
        valid.add(token)
        bench.last(bench.seconds(8, 2))
        begun = len(front.calls)
        valid.intersection_update({token})
        if i % 5 == 0:
            front.cut_watches()
        bench.last(bench.seconds(6, 4))
        refused = Counter((call.replica, call.connection) for call in front.calls[begun:] if call.code == 401)
        most = max(most, *refused.values(), 0)
        bench.measure_recovery()
    n_refused = sum(call.code == 401 for call in front.calls)
    bench.figure("answers of 401", n_refused, at_least=1)
    bench.figure("answers of 401 on one connection after a rotation, most", most, at_most=1)
    bench.figure("attempts that ended in an error", _n_errors(bench), at_most=0)
    bench.figure("leader changes", int(bench.replicas.holder != holder), at_most=0)
    measure_all_placed(bench, placing.names())


def _serving_files(authority: CertificateAuthority) -> dict[str, bytes]:
    certificate, key = authority.issue_server(["localhost"], ["127.0.0.1"])
    return {"tls.crt": certificate, "tls.key": key}


def _serve_from(folder: Path) -> Mapping[str, str]:
    """Have replicas show a certificate that lies behind the link of a mounted Secret."""
    volume = folder / "serving"
    volume.mkdir()
    authority = CertificateAuthority()
    (folder / "first-ca.crt").write_bytes(authority.pem)
    _swap(volume, "..first", _serving_files(authority))
    for name in ("tls.crt", "tls.key"):
        (volume / name).symlink_to(Path("..data") / name)
    return {"VANE_TLS_CERT_FILE": str(volume / "tls.crt"), "VANE_TLS_PRIVATE_KEY_FILE": str(volume / "tls.key")}


def serving_certificate_changes(bench: Bench) -> None:
    """The files of the serving certificate are swapped, written one after the other, and spoilt, under load."""
    volume, authority = bench.folder / "serving", CertificateAuthority()
    trusted = bench.folder / "trusted.crt"
    trusted.write_bytes((bench.folder / "first-ca.crt").read_bytes() + authority.pem)
    vane = bench.leader().vane
    askers = Askers(vane.port, trusted)
    askers.start()
    took_s = []
    try:
        bench.last(1.0)
        for i in range(int(bench.seconds(6, 2))):
            files = _serving_files(authority)
            if i % 2 == 0:
                _swap(volume, f"..v{i}", files)
                for name in files:
                    _link(volume / name, Path("..data") / name)
            else:
                for name, content in files.items():
                    (volume / name).unlink(missing_ok=True)
                    (volume / name).write_bytes(content)
                    bench.last(1.5)
            took_s.append(askers.until_shown(files["tls.crt"], lambda: bench.last(0.1), _SHOWN_S))
            bench.last(1.0)
        last = askers.shown
        (volume / "tls.crt").unlink()
        (volume / "tls.crt").write_bytes(b"spoilt")
        bench.last(bench.seconds(15, 3))
    finally:
        askers.stop()
    bench.figure("requests", askers.n_asked, at_least=50)
    bench.figure("requests that failed", len(askers.failures), at_most=0)
    bench.figure("new certificate shown after, longest, s", max(took_s), at_most=_SHOWN_S)
    bench.figure("certificates shown besides, once the files are spoilt", int(askers.shown != last), at_most=0)


def authority_changes(bench: Bench) -> None:
    """The API server gets another authority, and the file of authorities follows: both, the new one, the wrong one."""
    ca_file, servers, authority = bench.replicas.ca_file, bench.servers, CertificateAuthority()
    assert ca_file is not None
    old = servers.control_plane.ca_path.read_bytes()
    files = _serving_files(authority)
    pem = bench.folder / "other-serving.pem"
    pem.write_bytes(files["tls.crt"] + files["tls.key"])
    volume = bench.folder / "authorities"
    volume.mkdir()
    holder, placing = bench.replicas.holder, Placing(bench)

    def show(version: str, authorities: bytes, certificate: Path | None) -> None:
        _swap(volume, f"..{version}", {"ca.crt": authorities})
        servers.show_certificate(certificate)
        for replica in bench.replicas.all:
            replica.line.reset_all()

    show("both", old + authority.pem, None)
    _link(ca_file, volume / "..data" / "ca.crt")
    for version, authorities, certificate in (
        ("changed", old + authority.pem, pem),
        ("new", authority.pem, pem),
        ("wrong", authority.pem, None),
    ):
        show(version, authorities, certificate)
        # An authority that is wrong for longer than the renew deadline costs the lease, and must.
        bench.last(3.0 if version == "wrong" else bench.seconds(20, 4))
        if version != "wrong":
            bench.measure_recovery()
    show("mended", old, None)
    bench.measure_recovery()
    bench.figure("leader changes", int(bench.replicas.holder != holder), at_most=0)
    measure_all_placed(bench, placing.names())


ROWS = (
    Row(
        "F12",
        "the token file is rotated by a symlink, the old token answered 401",
        token_rotates,
        # A watch that was cut is opened again after up to 2.4 s, and once more where that was refused.
        Setting(has_token_file=True, allowance=Allowance(stale_s=5.0)),
    ),
    Row(
        "F13-serving",
        "the serving certificate is replaced under load",
        serving_certificate_changes,
        Setting(prepare=_serve_from),
    ),
    Row(
        "F13-authority",
        "the API server's authority is replaced, and the file of authorities with it",
        authority_changes,
        Setting(has_own_authorities=True),
    ),
)
