"""Which API server to use, and as whom: kubeconfig files and the service account, read by the `kubernetes` package.

That is imported where it reads: it takes a quarter of a second, and most that know a Connection read nothing.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from scheduler.errors import ConfigError
from scheduler.kube.binder.messages import BinderConnection
from scheduler.kube.credentials import Credentials, CredentialsError, Token, token_from_file
from scheduler.kube.endpoint import Endpoint, client_tls, user_agent
from scheduler.tls import ClientTls, TlsFilesError

if TYPE_CHECKING:
    from kubernetes.client import Configuration

log = logging.getLogger(__name__)

DEFAULT_KUBECONFIG = "~/.kube/config"

_EXPIRY_LEEWAY_S = 10.0
_AUTH_PROVIDER_LIFETIME_S = 30.0  # the package itself renews OIDC and GCP tokens, but only when it is asked
_SERVICE_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_MALFORMED = (
    yaml.YAMLError,
    OSError,
    TypeError,
    ValueError,
    AttributeError,
    KeyError,
    IndexError,
)
"""What the package raises for a file that is not a kubeconfig, besides its own error: whatever it trips over."""


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach the API server, and as whom. Shared by all threads of this process."""

    endpoint: Endpoint
    credentials: Credentials
    tls: ClientTls | None
    """None for plain HTTP."""
    source: str
    """Where the settings come from, for messages: `kubeconfig /path` or `service account`."""
    user_agent: str = user_agent()

    @property
    def host(self) -> str:
        return self.endpoint.host

    def authorization_header(self) -> str | None:
        """Return the header to send now, None to send none; also takes over another client certificate."""
        token = self.credentials.token()
        if token.cert_file is not None and self.tls is not None:
            self.tls.present(token.cert_file, token.key_file)
        return token.header

    def invalidate(self, header: str | None) -> None:
        """Say that the API server answered 401 to this header."""
        self.credentials.invalidate(header)

    def binder_connection(self, cluster: str = "") -> BinderConnection:
        """Return what the binder process needs to connect on its own; `cluster` is its name, "" for our own."""
        token = self.credentials.token()
        return BinderConnection(
            endpoint=self.endpoint,
            header=token.header,
            cert_file=token.cert_file,
            key_file=token.key_file,
            user_agent=self.user_agent,
            cluster=cluster,
        )

    def as_replica(self, identity: str, component: str = "") -> Connection:
        """Return the same connection under the User-Agent of one replica and, if named, one of its parts."""
        return replace(self, user_agent=user_agent(identity, component))


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """Where a Pod finds its service account; other paths are for tests and for running outside a Pod."""

    token_file: str = f"{_SERVICE_ACCOUNT}/token"
    ca_file: str = f"{_SERVICE_ACCOUNT}/ca.crt"


def load_connection(
    kubeconfig: str | None = None,
    context: str | None = None,
    environ: Mapping[str, str] = os.environ,
    service_account: ServiceAccount = ServiceAccount(),
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Connection:
    """Read the kubeconfig named, else $KUBECONFIG, else the service account, else ~/.kube/config.

    Raises
    ------
    ConfigError
        Nothing usable was found; the message says where it was looked for and what to write.
    """
    paths = kubeconfig or environ.get("KUBECONFIG")
    if not paths and environ.get("KUBERNETES_SERVICE_HOST"):
        return _from_service_account(environ, service_account)
    if not paths and not os.path.exists(os.path.expanduser(DEFAULT_KUBECONFIG)):
        raise ConfigError(
            f"no API server: KUBECONFIG is not set, {DEFAULT_KUBECONFIG} does not exist and this is not a Pod; "
            "write --kubeconfig PATH or set KUBECONFIG"
        )
    return _from_kubeconfig(_Kubeconfig(paths or DEFAULT_KUBECONFIG, context, now))


def _from_service_account(environ: Mapping[str, str], account: ServiceAccount) -> Connection:
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException, incluster_config

    configuration = Configuration()
    package: Any = incluster_config  # without annotations
    loader = package.InClusterConfigLoader(
        token_filename=account.token_file, cert_filename=account.ca_file, environ=environ
    )
    try:
        loader.load_and_set(configuration)
    except (ConfigException, OSError) as error:
        raise ConfigError(
            f"service account: {error} ({account.token_file}, {account.ca_file}); set automountServiceAccountToken: "
            "true on the Pod, or write --kubeconfig PATH"
        ) from error
    return _connection(configuration, lambda: token_from_file(account.token_file), "service account")


def _from_kubeconfig(kubeconfig: _Kubeconfig) -> Connection:
    configuration, token = kubeconfig.load()
    if kubeconfig.token_file is not None:
        path = kubeconfig.token_file
        return _connection(configuration, lambda: token_from_file(path), kubeconfig.name)
    first: list[Token] = [token]

    def fetch() -> Token:
        if first:  # the plugin has just run to load the settings
            return first.pop()
        try:
            return kubeconfig.load()[1]
        except ConfigError as error:
            raise CredentialsError(str(error)) from error

    return _connection(configuration, fetch, kubeconfig.name)


def _connection(configuration: Configuration, fetch: Callable[[], Token], source: str) -> Connection:
    from kubernetes.client.rest import should_bypass_proxies

    host = str(configuration.host).rstrip("/")
    if not host.startswith(("http://", "https://")):
        raise ConfigError(f"{source}: server {host!r} has no scheme; write https://HOST:PORT")
    proxy = str(configuration.proxy) if configuration.proxy else None
    if proxy is not None and should_bypass_proxies(host, configuration.no_proxy or ""):
        proxy = None
    if proxy is not None and not proxy.startswith(("http://", "https://")):
        shown = f"of scheme {proxy.partition('://')[0]}" if "://" in proxy else "without a scheme"  # no password in it
        raise ConfigError(f"{source}: a proxy {shown} is not supported; write an http:// or https:// proxy")
    endpoint = Endpoint(
        host=host,
        server_name=configuration.tls_server_name or None,
        verify=bool(configuration.verify_ssl),
        ca_file=configuration.ssl_ca_cert or None,
        cert_file=configuration.cert_file or None,
        key_file=configuration.key_file or None,
        proxy=proxy,
    )
    if endpoint.is_tls and not endpoint.verify:
        log.warning("%s: TLS of %s is not verified (insecure-skip-tls-verify)", source, host)
    try:
        connection = Connection(endpoint, Credentials(fetch), client_tls(endpoint), source)
        connection.authorization_header()
    except (TlsFilesError, CredentialsError) as error:
        raise ConfigError(f"{source}: {error}") from error
    return connection


class _Kubeconfig:
    """One context of one or several merged kubeconfig files, loadable again and again."""

    def __init__(self, paths: str, context: str | None, now: Callable[[], datetime]) -> None:
        self._paths = paths
        self._context = context
        self._now = now
        self.name = f"kubeconfig {paths}"
        self.token_file: str | None = None

    def load(self) -> tuple[Configuration, Token]:
        from kubernetes.client import Configuration
        from kubernetes.config import ConfigException, kube_config

        self._check_files()
        configuration = Configuration(host="")
        package: Any = kube_config  # without annotations
        try:
            merger = package.KubeConfigMerger(self._paths)
            loader = package.KubeConfigLoader(
                config_dict=merger.config, active_context=self._context, config_base_path=None
            )
            user = _user(merger, loader)
            self.token_file = _token_file(user)
            loader.load_and_set(configuration)
        except (ConfigException, *_MALFORMED) as error:
            detail = " ".join(str(error).split())
            raise ConfigError(
                f"{self.name}: {detail or type(error).__name__}; write a kubeconfig with clusters, users, contexts and "
                "a current-context (`kubectl config view` shows one)"
            ) from error
        if not configuration.host:
            raise ConfigError(f"{self.name}: the cluster has no server; write server: https://HOST:PORT")
        return configuration, self._token(configuration, loader, user.value if user is not None else {})

    def _check_files(self) -> None:
        paths = [Path(path).expanduser() for path in self._paths.split(os.pathsep) if path]
        if not any(path.exists() for path in paths):
            raise ConfigError(f"{self.name}: no such file; write --kubeconfig PATH or set KUBECONFIG")

    def _token(self, configuration: Configuration, loader: Any, user: Mapping[str, Any]) -> Token:
        # Not configuration.auth_settings(): near the token's end that runs an exec plugin a second time.
        header = configuration.api_key.get("BearerToken")
        if "exec" not in user:
            lifetime_s = _AUTH_PROVIDER_LIFETIME_S if "auth-provider" in user else math.inf
            return Token(header, lifetime_s)
        cert_file = configuration.cert_file or None
        if header is None and cert_file is None:
            plugin = user["exec"]
            command = plugin.get("command") if isinstance(plugin, Mapping) else plugin
            raise ConfigError(
                f"{self.name}: exec plugin {command!r} gave no credentials (its message is logged above); run it by "
                "hand, or write another user"
            )
        expiry = getattr(loader, "expiry", None)  # set by the package when the plugin said when its token ends
        lifetime_s = math.inf
        if expiry is not None:
            lifetime_s = max((expiry - self._now()).total_seconds() - _EXPIRY_LEEWAY_S, 1.0)
        return Token(header, lifetime_s, cert_file, configuration.key_file or None)


def _user(merger: Any, loader: Any) -> Any:
    name = loader.current_context["context"].get("user")
    users = merger.config["users"] if merger.config.safe_get("users") else None
    entry = users.get_with_name(name, safe=True) if users is not None and name else None
    # `user: {}` is a user without credentials, as for a server that asks for none.
    return entry["user"] if entry is not None and entry.safe_get("user") else None


def _token_file(user: Any) -> str | None:
    """Return the user's tokenFile; it precedes `token`, as in client-go."""
    path = user.safe_get("tokenFile") if user is not None else None
    if not path:
        return None
    return str(os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(user.path)), path)))
