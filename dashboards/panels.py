"""The building blocks of our dashboards: panels with a unit, a description and legends; variables; a grid.

Queries are written with `<vane>` for the selector of the replicas that the dashboard's variables choose.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from grafana_foundation_sdk.builders import bargauge, common, dashboard, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models

DATASOURCE: Final = models.DataSourceRef(type_val="prometheus", uid="${datasource}")

CLUSTER: Final = 'cluster=~"$cluster"'
"""Where the series have no such label, as in a Prometheus of one cluster, "All" is what there is to choose."""

_VANE: Final = f'{CLUSTER}, namespace=~"$namespace", job=~"$job", instance=~"$instance"'
_OF_NAMESPACE: Final = f'{CLUSTER}, namespace=~"$namespace"'
OF_JOB: Final = f'{_OF_NAMESPACE}, job=~"$job"'
_REPLICA: Final = "cluster, namespace, job, instance"
_TAG: Final = "vane"

Query = tuple[str, str]
"""PromQL, and the legend: a text with `{{label}}` in it."""


def leading(expr: str) -> str:
    """Leave out the replicas that stand by, whose queues fill and empty without them; all stay without a lease."""
    return f"({expr} unless on ({_REPLICA}) leader_election_master_status{{<vane>}} == 0)"


def or_none(expr: str, label: str) -> str:
    """Give a 0 with `none` for the label where there is nothing: nothing bad happened, rather than no data."""
    return f'{expr} or on () label_replace(vector(0), "{label}", "none", "", "")'


def quantiles(histogram: str, matchers: str = "") -> list[Query]:
    """Return the 50th, 90th and 99th percentile of a histogram of Vane's."""
    rate = f"sum by (le) (rate({histogram}_bucket{{<vane>{matchers}}}[$__rate_interval]))"
    return [(f"histogram_quantile({q}, {rate})", f"p{round(q * 100)}") for q in (0.5, 0.9, 0.99)]


def slowest(histogram: str, label: str, matchers: str = "") -> list[Query]:
    """Return the 99th percentile of a histogram of Vane's for each value of a label."""
    rate = f"sum by (le, {label}) (rate({histogram}_bucket{{<vane>{matchers}}}[$__rate_interval]))"
    return [(f"histogram_quantile(0.99, {rate})", f"{{{{{label}}}}}")]


def mean(histogram: str, labels: str, legend: str, matchers: str = "") -> list[Query]:
    """Return the mean of a histogram of Vane's for each combination of labels."""
    ours = f"{{<vane>{matchers}}}[$__rate_interval]"
    parts = (f"sum by ({labels}) (rate({histogram}_{part}{ours}))" for part in ("sum", "count"))
    return [(" / ".join(parts), legend)]


@dataclass(frozen=True, slots=True)
class Panel(ABC):
    """One panel; `steps` are (value from which on, colour), the first value being None."""

    title: str
    description: str
    unit: str
    queries: Sequence[Query]
    width: int = 8
    low: float | None = None
    high: float | None = None
    steps: Sequence[tuple[float | None, str]] = ((None, "green"),)

    @abstractmethod
    def build(self, id_: int) -> Builder[models.Panel]:
        """Return the panel as the SDK's builder; what is left to do depends on the kind."""

    def _dressed(self, builder: Any, height: int, id_: int) -> Any:
        thresholds = dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE)
        thresholds = thresholds.steps([models.Threshold(value=value, color=color) for value, color in self.steps])
        builder = builder.id(id_).title(self.title).description(self.description).unit(self.unit)
        builder = builder.datasource(DATASOURCE).span(self.width).height(height).thresholds(thresholds)
        builder = builder if self.low is None else builder.min(self.low)
        builder = builder if self.high is None else builder.max(self.high)
        for i, (expr, legend) in enumerate(self.queries):
            target = prometheus.Dataquery().datasource(DATASOURCE).ref_id(chr(ord("A") + i))
            builder = builder.with_target(target.expr(expr.replace("<vane>", _VANE)).legend_format(legend).range())
        return builder


class Line(Panel):
    """Series over time."""

    __slots__ = ()

    def build(self, id_: int) -> Builder[models.Panel]:
        legend = common.VizLegendOptions().display_mode(common_models.LegendDisplayMode.TABLE).show_legend(True)
        legend = legend.placement(common_models.LegendPlacement.BOTTOM).calcs(["lastNotNull", "max"])
        tooltip = common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI)
        tooltip = tooltip.sort(common_models.SortOrder.DESCENDING)
        panel = timeseries.Panel().legend(legend).tooltip(tooltip).line_width(1).fill_opacity(10)
        panel = panel.show_points(common_models.VisibilityMode.NEVER)
        built: Builder[models.Panel] = self._dressed(panel, 8, id_)
        return built


class Stat(Panel):
    """The last value, large."""

    __slots__ = ()

    def build(self, id_: int) -> Builder[models.Panel]:
        last = common.ReduceDataOptions().calcs(["lastNotNull"])
        panel = stat.Panel().reduce_options(last).graph_mode(common_models.BigValueGraphMode.AREA)
        panel = panel.color_mode(common_models.BigValueColorMode.VALUE)
        built: Builder[models.Panel] = self._dressed(panel, 4, id_)
        return built


class Bars(Panel):
    """The last values, one bar for each series."""

    __slots__ = ()

    def build(self, id_: int) -> Builder[models.Panel]:
        last = common.ReduceDataOptions().calcs(["lastNotNull"])
        panel = bargauge.Panel().reduce_options(last).display_mode(common_models.BarGaugeDisplayMode.BASIC)
        panel = panel.orientation(common_models.VizOrientation.HORIZONTAL)
        built: Builder[models.Panel] = self._dressed(panel, 8, id_)
        return built


@dataclass(frozen=True, slots=True)
class Timeline(Panel):
    """States over time, a row for each series; `states` names the values: (text, colour)."""

    states: Sequence[tuple[str, str]] = ()

    def build(self, id_: int) -> Builder[models.Panel]:
        named = {
            str(value): models.ValueMappingResult(text=text, color=color, index=value)
            for value, (text, color) in enumerate(self.states)
        }
        legend = common.VizLegendOptions().display_mode(common_models.LegendDisplayMode.LIST).show_legend(True)
        legend = legend.placement(common_models.LegendPlacement.BOTTOM)
        panel = statetimeline.Panel().legend(legend).show_value(common_models.VisibilityMode.NEVER)
        panel = panel.mappings([models.ValueMap(options=named)]).fill_opacity(70).row_height(0.8)
        built: Builder[models.Panel] = self._dressed(panel, 8, id_)
        return built


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One file: `uid` never changes, as bookmarks and links hold it; `rows` are panels under their headings."""

    uid: str
    title: str
    description: str
    variables: Sequence[Builder[models.VariableModel]]
    rows: Mapping[str, Sequence[Panel]]

    def build(self) -> models.Dashboard:
        built = dashboard.Dashboard(self.title).uid(self.uid).description(self.description)
        built = built.tags([_TAG, "kubernetes", "scheduler"]).readonly().timezone("browser").refresh("30s")
        built = built.time("now-1h", "now").tooltip(models.DashboardCursorSync.CROSSHAIR)
        others = dashboard.DashboardLink("Vane").type(models.DashboardLinkType.DASHBOARDS).tags([_TAG])
        built = built.link(others.as_dropdown(True).include_vars(True).keep_time(True))
        for variable in self.variables:
            built = built.with_variable(variable)
        next_id = 1
        for heading, panels in self.rows.items():
            built = built.with_row(dashboard.Row(heading).id(next_id))
            for id_, panel in enumerate(panels, next_id + 1):
                built = built.with_panel(panel.build(id_))
            next_id += 1 + len(panels)
        return built.build()


def datasource_variable() -> Builder[models.VariableModel]:
    return dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")


def choice(name: str, label: str, query: str, of_all: str = ".+") -> Builder[models.VariableModel]:
    """Return a variable of which several values may be chosen, all of them at first.

    `of_all` is the pattern for all: `.*` where the label may be missing from the series.
    """
    variable = dashboard.QueryVariable(name).label(label).datasource(DATASOURCE).query(query)
    variable = variable.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(models.VariableSort.ALPHABETICAL_ASC)
    everything = models.VariableOption(selected=True, text="All", value="$__all")
    return variable.multi(True).include_all(True).all_value(of_all).current(everything)


def replica_variables() -> Iterable[Builder[models.VariableModel]]:
    """Return the variables that `<vane>` stands for, each narrowed by those before it."""
    return (
        datasource_variable(),
        choice("cluster", "Cluster", "label_values(vane_build_info, cluster)", of_all=".*"),
        choice("namespace", "Namespace", f"label_values(vane_build_info{{{CLUSTER}}}, namespace)", of_all=".*"),
        choice("job", "Job", f"label_values(vane_build_info{{{_OF_NAMESPACE}}}, job)"),
        choice("instance", "Instance", f"label_values(vane_build_info{{{OF_JOB}}}, instance)"),
    )
