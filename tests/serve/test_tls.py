"""The certificate that the server shows, as clients see it in a handshake."""

from __future__ import annotations

import datetime
import ssl

import pytest
from cryptography import x509

from scheduler.serve.tls import ServingCertificate

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime.datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def serving(clock: Clock) -> ServingCertificate:
    return ServingCertificate(None, None, "127.0.0.1", clock)


def shown(serving: ServingCertificate) -> x509.Certificate:
    """Return what a client is shown that connects now."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    client = context.wrap_bio(to_client, to_server)
    server = serving.context.wrap_bio(to_server, to_client, server_side=True)
    is_done = {client: False, server: False}
    while not all(is_done.values()):
        for side in is_done:
            try:
                side.do_handshake()
                is_done[side] = True
            except ssl.SSLWantReadError:
                pass
    certificate = client.getpeercert(binary_form=True)
    assert certificate is not None
    return x509.load_der_x509_certificate(certificate)


def test_a_self_signed_certificate_gives_way_to_the_next_before_it_ends(
    serving: ServingCertificate, clock: Clock
) -> None:
    """Over ten years, looked at once a day, whoever connects is shown a valid one."""
    numbers = set()
    for day in range(0, 3650, 5):
        clock.now = START + datetime.timedelta(days=day)
        serving.renew()
        certificate = shown(serving)
        assert certificate.not_valid_before_utc <= clock.now
        assert certificate.not_valid_after_utc >= clock.now + datetime.timedelta(days=29)
        numbers.add(certificate.serial_number)
    assert len(numbers) == 11


def test_a_clock_that_is_set_back_leaves_no_certificate_that_is_not_valid_yet(
    serving: ServingCertificate, clock: Clock
) -> None:
    clock.now = START - datetime.timedelta(minutes=30)
    assert not serving.renew(), "it was made to be valid an hour before"
    clock.now = START - datetime.timedelta(days=2)
    assert serving.renew()
    assert shown(serving).not_valid_before_utc <= clock.now
