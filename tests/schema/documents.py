"""Good files in which every field of a kind stands somewhere, small ones, so that many can be made of each."""

from __future__ import annotations

from tests.rule_tests.test_reader import GOOD as MOMENTS

_RULES = "apiVersion: vane.dev/v1\nkind: Rules\n"
_CPU = "signals: {cpu: {expr: node_load1, unit: ratio}, total: {expr: sum(up), by: cluster}}\n"
_RULE = _RULES + _CPU + "rules:\n  - "
_TENANT = _RULES + _CPU + "tenants:\n  - "

RULES = (
    _RULES
    + "dialect: prometheus\nsignals:\n  cpu: {expr: node_load1, by: node, unit: ratio, interval: 15s, max_age: 60s,"
    " range: [0, 100%], reduce: max, inflight: {cpu: request}, window: 2m, lag: push_lag_seconds, server: other}\n",
    _RULES + "signals:\n  cpu: {expr: node_load1, inflight: {value: 2}, by: zone}\n",
    _RULES + "signals:\n  cpu: {expr: node_load1, unit: ratio, inflight: {cpu: learned, without_request: 500m}}\n",
    _RULES + "signals:\n  mem: {expr: node_load1, inflight: {memory: 512Mi}, unit: bytes}\n",
    _RULES + "signals:\n  cpu: {expr: node_load1, smoothing: 30s}\n",
    _RULES + "signals:\n  p99: {expr: latency, by: workload, workload: {label: app, namespace: ns}}\n",
    _RULES + "signals:\n  p99: {expr: latency, by: workload, workload: app}\n",
    _RULES + "signals:\n  rtt: {expr: probe, by: pair, pair: {label: zone, from: source, to: target}}\n",
    _RULES + "signals:\n  mates: {count: {same: [app, tier], window: 1h, namespaces: all}, by: node, unit: none}\n",
    _RULES
    + "signals:\n  all: {pods: {}}\n  use: {requested: cpu, unit: ratio}\n  room: {allocatable: memory, by: cluster}\n",
    _RULE + "{name: hot, match: {namespaces: [shop, 'shop-*'], labels: {tier: web}}, signal: cpu, mode: enforce,"
    " filter: {max: 80%, clear: 0.75, valve: 50%, missing: reject, hold: 60s, soft_after: 10m},"
    " score: {best: 0%, worst: 1, missing: worst}, weight: 2, max_share: 50%, max_age: 40s}\n",
    _RULES + "signals:\n  cpu: {expr: 'max by (target) (node_load1)', by: node, node_label: target}\n",
    _RULE + "{name: some, signal: cpu, filter: {max: 1}, match: {requests: [nvidia.com/gpu, 'amd.com/*'],"
    " matchExpressions: [{key: tier, operator: In, values: [web]}, {key: old, operator: DoesNotExist}],"
    " namespace_labels: {team: [shop, bank]}, namespaceSelector: {matchLabels: {env: prod},"
    " matchExpressions: [{key: env, operator: NotIn, values: [test]}]}}}\n",
    _RULE + "{name: cold, signal: cpu, filter: {min: 0.1}, canary: {percent: 10, namespaces: ['test-*']}}\n",
    _RULE + "{name: bent, signal: cpu, score: {points: [[0, 100], [50%, 80], [1, 0]]},"
    " weight: {signal: total, points: [[0, 1], [2, 10]], missing: 3}}\n",
    _RULE + "{name: same, label_match: {pod: tenant, node: example.com/tenant}}\n",
    _RULE + "{name: same, label_match: tenant}\n",
    _RULES + "signals: {p99: {expr: latency, by: workload, workload: app}}\n"
    "rules:\n  - {name: own, signal: p99, workload: app.kubernetes.io/name, score: {best: 1, worst: 2}}\n",
    _RULES + "signals: {rtt: {expr: probe, by: pair, pair: {label: zone, from: source, to: target}}}\n"
    "rules:\n  - {name: near, signal: rtt, calls: {labels: {app: cart}, namespaces: same}, score: {best: 1,"
    " worst: 2}}\n"
    "  - {name: far, signal: rtt, calls: {pod_label: example.com/zone}, score: {best: 1, worst: 2}}\n",
    _RULES + "signals: {cards: {expr: DCGM_FI_DEV_GPU_UTIL, by: gpu}}\n"
    "rules:\n  - {name: idle, signal: cards, gpus: [nvidia.com/gpu, 'nvidia.com/mig-*'], filter: {max: 90}}\n",
    _TENANT
    + "{name: shop, match: {namespaces: ['shop-*'], namespace_labels: {team: shop, of: [a, b]}}, overcommit: 105%,"
    " resources: [cpu, nvidia.com/gpu], while: [{signal: cpu, max: 85%, clear: 0.8, hold: 1m}]}\n",
    _TENANT + "{name: bank, overcommit: 90%}\n",
    _TENANT + "{name: bank, overcommit: 110%, while: [{signal: cpu, min: 0.1}]}\n",
)

RULE_TESTS = (
    MOMENTS,
    "apiVersion: vane.dev/v1\nkind: RuleTests\nrule_files: [rules.yaml]\nnamespaces: {shop: {team: web}}\ntests:\n"
    "  - {name: one, nodes: [{name: a, labels: {zone: z}, provider_id: 'aws:///a'}], at: 5m, pod: {name: web,"
    " annotations: {key: ''}}, expect: [{rule: hot, acts: true, concerns: true, weight: 1, nodes: {a: missing}}]}\n",
)

_VANE = "apiVersion: vane.dev/v1\nkind: VaneConfiguration\n"
_KUBE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

CONFIGURATIONS = (
    _VANE + "schedulerName: vane\nkubeconfig: /k\nrules: [rules]\nclusters: {edge: /e}\nlogging: {format: json,"
    " verbosity: 4}\n",
    _VANE + "serving: {securePort: 10259, bindAddress: '::1', unauthenticatedMetrics: true, tlsCertFile: /c,"
    " tlsPrivateKeyFile: /k}\n",
    _VANE
    + "leaderElection: {leaderElect: true, leaseDuration: 1m30s, renewDeadline: 10s, retryPeriod: 500ms, resourceLock:"
    " leases, resourceName: vane, resourceNamespace: kube-system}\n",
    _VANE + "prometheus: {url: 'https://p:9090', flavor: thanos, tokenFile: /t, certFile: /c, keyFile: /k, caFile: /a,"
    " headers: {X-Scope-OrgID: shop}, matchers: {cluster: prod}, maxSeries: 7, maxBytes: 2048, features:"
    " [promql-duration-expr], servers: [{name: far, url: 'http://q', username: u,"
    " passwordFile: /p}]}\n",
    _VANE + "scheduler: {profiles: [{schedulerName: vane}]}\n",
)

KUBE_CONFIGURATIONS = (
    _KUBE
    + "profiles: [{schedulerName: vane, percentageOfNodesToScore: 0, plugins: {score: {enabled: [{name: ImageLocality,"
    " weight: 2}], disabled: [{name: '*'}]}}, pluginConfig: [{name: Rack, args: {label: rack}}]}]\n",
    _KUBE + "leaderElection: {leaderElect: true, leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 2s,"
    " resourceLock: leases, resourceName: vane, resourceNamespace: kube-system}\n",
    _KUBE + "clientConnection: {kubeconfig: /k, acceptContentTypes: '', contentType: json, qps: 50, burst: 100}\n",
    _KUBE
    + "podInitialBackoffSeconds: 1\npodMaxBackoffSeconds: 10\npercentageOfNodesToScore: 50\nparallelism: 16\nextenders:"
    " []\n"
    "enableProfiling: false\nenableContentionProfiling: true\ndelayCacheUntilActive: false\n",
)
