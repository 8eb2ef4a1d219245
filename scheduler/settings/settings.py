"""The settings of one run as `load` makes them: immutable, and picklable for the other processes."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, InstanceOf, StrictBool, StrictInt, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from scheduler.settings.prometheus import PrometheusSettings
from scheduler.settings.scheduler import SchedulerSettings
from scheduler.settings.values import Address, AnyPath, DnsLabel, DnsName, Group, NamedPaths, Seconds, Text, together


class ServingSettings(Group):
    """The page with health and metrics."""

    model_config = ConfigDict(json_schema_extra=together(("tlsCertFile", "tlsPrivateKeyFile")))

    secure_port: Annotated[StrictInt, Field(ge=0, le=65535)] = Field(
        default=10259, description="HTTPS port of health and metrics, the same as kube-scheduler's; 0: no pages"
    )
    bind_address: Address = Field(
        default="127.0.0.1",
        description="IP address to listen on; beyond loopback all callers need a token that the API server accepts",
    )
    tls_cert_file: AnyPath | None = Field(
        default=None,
        description="Serving certificate with its chain (PEM), read again when it changes; unset: self-signed",
    )
    tls_private_key_file: AnyPath | None = Field(
        default=None, description="Private key (PEM) of the serving certificate"
    )
    unauthenticated_metrics: StrictBool = Field(
        default=False,
        description="Show all pages to anyone who can connect, without a token",
    )

    @property
    def is_loopback(self) -> bool:
        return self.bind_address == "localhost" or ipaddress.ip_address(self.bind_address).is_loopback


class LeaderElectionSettings(Group):
    """Which of several replicas schedules; names and defaults are kube-scheduler's, but for the Lease's own."""

    leader_elect: StrictBool = Field(
        default=True,
        description="Take part in the election of one leader among the replicas; only the leader schedules",
    )
    lease_duration_s: Annotated[Seconds, Field(ge=1.0)] = Field(
        default=15.0,
        alias="leaseDuration",
        description="How long standbys wait after the last renewal that they saw before one takes the lease",
    )
    renew_deadline_s: Annotated[Seconds, Field(gt=0.0)] = Field(
        default=10.0,
        alias="renewDeadline",
        description="How long the leader tries to renew the lease before it gives up and ends",
    )
    retry_period_s: Annotated[Seconds, Field(gt=0.0)] = Field(
        default=2.0,
        alias="retryPeriod",
        description="Time between two attempts to take or renew the lease",
    )
    resource_lock: Literal["leases"] = Field(
        default="leases", description="Kind of the lock object; only leases is supported"
    )
    resource_name: DnsName = Field(
        default="vane", description="Name of the Lease; by default not kube-scheduler, to run beside kube-scheduler"
    )
    resource_namespace: DnsLabel = Field(default="kube-system", description="Namespace of the Lease")


class LoggingSettings(Group):
    """What is written to standard error."""

    format: Literal["text", "json"] = Field(
        default="text", description="Log format: text for people, json for log collectors"
    )
    verbosity: Annotated[StrictInt, Field(ge=0, le=10)] = Field(
        default=0, description="Log verbosity, 0 to 10: debug messages from 4 on, those of libraries from 6 on"
    )


class Settings(BaseSettings):
    """All settings of one run; picklable, so that the other processes get the same."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        case_sensitive=True,
        hide_input_in_errors=True,
    )

    scheduler_name: Text = Field(
        default="vane",
        description="Schedule Pods with this spec.schedulerName; by default not default-scheduler, to run beside it",
    )
    kubeconfig: AnyPath | None = Field(
        default=None, description="kubeconfig file; unset: the Pod's service account, or what kubectl would use"
    )
    rules: tuple[AnyPath, ...] = Field(
        default=(), description="Rule file, or folder of rule files; unset: no rules, like kube-scheduler"
    )
    scheduler: Annotated[InstanceOf[SchedulerSettings], WithJsonSchema({})] = SchedulerSettings()
    clusters: NamedPaths = Field(
        default=(), description="Name and kubeconfig file of another cluster in which Bind plugins may bind"
    )
    leader_election: LeaderElectionSettings = LeaderElectionSettings()
    prometheus: PrometheusSettings = PrometheusSettings()
    serving: ServingSettings = ServingSettings()
    logging: LoggingSettings = LoggingSettings()

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, *_: object, **__: object
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read nothing that was not handed in: `load` names its sources."""
        return (init_settings,)
