"""KubeSchedulerConfiguration files: what a real kube-scheduler makes of each is asked when the tests run."""

from __future__ import annotations

from typing import Final, NamedTuple

HEAD: Final = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class Case(NamedTuple):
    """One file without its head; `refused_here` is what Vane says of a file that only kube-scheduler takes."""

    text: str
    refused_here: str = ""


def args(name: str, text: str) -> str:
    return f"profiles: [{{pluginConfig: [{{name: {name}, args: {text}}}]}}]\n"


def plugins(text: str) -> str:
    return f"profiles: [{{plugins: {text}}}]\n"


def strategy(text: str) -> str:
    return args("NodeResourcesFit", f"{{scoringStrategy: {text}}}")


def ratio(shape: str) -> str:
    return strategy(f"{{type: RequestedToCapacityRatio, requestedToCapacityRatio: {{shape: {shape}}}}}")


def added(text: str) -> str:
    return args("NodeAffinity", f"{{addedAffinity: {text}}}")


def required(term: str) -> str:
    return added(f"{{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{term}]}}}}")


def preferred(term: str) -> str:
    return added(f"{{preferredDuringSchedulingIgnoredDuringExecution: [{term}]}}")


def spread(text: str) -> str:
    return args("PodTopologySpread", text)


def constraint(text: str) -> str:
    return spread(f"{{defaultingType: List, defaultConstraints: [{text}]}}")


_HOST: Final = "topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway"

CASES: Final[dict[str, Case]] = {
    "nothing": Case(""),
    # The document
    "an unknown field": Case("parallel: 4\n"),
    "a field twice": Case("parallelism: 4\nparallelism: 4\n"),
    "parallelism 1": Case("parallelism: 1\n"),
    "parallelism 0": Case("parallelism: 0\n"),
    "parallelism as text": Case('parallelism: "4"\n'),
    "parallelism beyond int32": Case("parallelism: 4294967296\n"),
    "percentage 100": Case("percentageOfNodesToScore: 100\n"),
    "percentage 101": Case("percentageOfNodesToScore: 101\n"),
    "percentage -1": Case("percentageOfNodesToScore: -1\n"),
    "nulls": Case("parallelism: ~\npercentageOfNodesToScore: ~\nextenders: ~\nprofiles: ~\nleaderElection: ~\n"),
    "backoff 5 to 60": Case("podInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 60\n"),
    "first backoff beyond the longest": Case("podInitialBackoffSeconds: 20\n"),
    "longest backoff below the first": Case("podInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 4\n"),
    "first backoff 0": Case("podInitialBackoffSeconds: 0\n"),
    "a backoff of half a second": Case("podInitialBackoffSeconds: 0.5\n"),
    "numbers with a point": Case("parallelism: 4.0\npodMaxBackoffSeconds: 20.0\n"),
    "a number of base 16": Case("podMaxBackoffSeconds: 0x20\n"),
    "a backoff beyond int64": Case("podMaxBackoffSeconds: 9223372036854775808\n"),
    "an alias": Case(
        "parallelism: &a 4\npercentageOfNodesToScore: *a\n", "an alias, got '*a'. Write the value itself here"
    ),
    "a switch in words": Case("enableProfiling: yes\n"),
    "an extender that is none": Case("extenders: 1\n"),
    "profiling off": Case("enableProfiling: false\nenableContentionProfiling: false\n"),
    "profiling as a number": Case("enableProfiling: 1\n"),
    "a cache that waits": Case("delayCacheUntilActive: true\n"),
    "healthzBindAddress": Case("healthzBindAddress: 0.0.0.0:10251\n"),
    "metricsBindAddress": Case("metricsBindAddress: 0.0.0.0:10251\n"),
    # The client
    "qps and burst": Case(
        "clientConnection: {kubeconfig: KUBECONFIG, qps: 12.5, burst: 20, contentType: application/json}\n"
    ),
    "negative burst": Case("clientConnection: {kubeconfig: KUBECONFIG, burst: -1}\n"),
    "qps as text": Case("clientConnection: {kubeconfig: KUBECONFIG, qps: '5'}\n"),
    "an unknown field of the client": Case("clientConnection: {kubeconfig: KUBECONFIG, timeout: 5s}\n"),
    # The election
    "no election": Case("leaderElection: {leaderElect: false}\n"),
    "an election": Case(
        "leaderElection: {leaseDuration: 30s, renewDeadline: 20s, retryPeriod: 1s, resourceName: a,"
        " resourceNamespace: b}\n"
    ),
    "an election with nulls": Case("leaderElection: {leaderElect: ~, leaseDuration: ~, resourceName: ~}\n"),
    "an empty duration": Case("leaderElection: {leaseDuration: ''}\n"),
    "a duration in parts": Case("leaderElection: {leaseDuration: 1m30s, retryPeriod: 1500ms}\n"),
    "a lease below a second": Case(
        "leaderElection: {leaseDuration: 900ms, renewDeadline: 500ms, retryPeriod: 100ms}\n", "must be a duration with"
    ),
    "the name of a lease as a number": Case("leaderElection: {resourceName: 5}\n"),
    "an election with what is unset": Case("leaderElection: {resourceLock: '', resourceName: '', leaseDuration: 0s}\n"),
    "a lease as long as its renewal": Case("leaderElection: {leaseDuration: 10s}\n"),
    "another lock": Case("leaderElection: {resourceLock: endpointsleases}\n"),
    "a duration as a number": Case("leaderElection: {leaseDuration: 30}\n"),
    "a negative retry": Case("leaderElection: {retryPeriod: -1s}\n"),
    "an unknown field of the election": Case("leaderElection: {lease: 30s}\n"),
    # Profiles
    "two profiles": Case("profiles: [{schedulerName: a}, {schedulerName: b, percentageOfNodesToScore: 50}]\n"),
    "a name twice": Case("profiles: [{schedulerName: a}, {schedulerName: a}]\n"),
    "a profile without a name among several": Case("profiles: [{schedulerName: a}, {}]\n"),
    "a profile that is null": Case("profiles: [~]\n"),
    "a profile as text": Case("profiles: [vane]\n"),
    "a name with a space": Case("profiles: [{schedulerName: 'a b'}]\n", "must be 1 to 253 characters without spaces"),
    "an empty name": Case("profiles: [{schedulerName: ''}]\n"),
    "a profile's percentage 101": Case("profiles: [{percentageOfNodesToScore: 101}]\n"),
    "an unknown field of a profile": Case("profiles: [{name: a}]\n"),
    "another order in one profile": Case(
        "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort: {disabled: [{name: '*'}]}}}]\n"
    ),
    # Plugins
    "a weight": Case(
        plugins("{score: {enabled: [{name: ImageLocality, weight: 7}], disabled: [{name: ImageLocality}]}}")
    ),
    "a weight of 0": Case(plugins("{multiPoint: {enabled: [{name: ImageLocality, weight: 0}]}}")),
    "a weight as text": Case(plugins("{score: {enabled: [{name: ImageLocality, weight: '7'}]}}")),
    "a weight of 1000": Case(
        plugins("{score: {enabled: [{name: ImageLocality, weight: 1000}]}}"), "must be a whole number from 1 to 100"
    ),
    "a negative weight": Case(plugins("{score: {enabled: [{name: ImageLocality, weight: -1}]}}")),
    "everything off but what must be": Case(
        plugins(
            "{multiPoint: {disabled: [{name: '*'}],"
            " enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeName}]}}"
        )
    ),
    "nobody who binds": Case(plugins("{bind: {disabled: [{name: '*'}]}}")),
    "an unknown plugin": Case(plugins("{filter: {enabled: [{name: Nobody}]}}")),
    "an unknown plugin off": Case(plugins("{filter: {disabled: [{name: Nobody}]}}"), "no such plugin, got 'Nobody'"),
    "a plugin where it has nothing to do": Case(plugins("{bind: {enabled: [{name: ImageLocality}]}}")),
    "a plugin twice": Case(plugins("{filter: {enabled: [{name: NodeName}, {name: NodeName}]}}")),
    "a plugin that is null": Case(plugins("{filter: {enabled: [~]}}")),
    "arguments that are null": Case("profiles: [{pluginConfig: [~]}]\n", "pluginConfig[0].name: must be 1 to 253"),
    "plugins as a list": Case(plugins("[]")),
    "a plugin without a name": Case(plugins("{filter: {enabled: [{}]}}")),
    "a plugin of old": Case(plugins("{filter: {enabled: [{name: EBSLimits}]}}")),
    "an unknown point": Case(plugins("{mutate: {}}")),
    "a point without anything": Case(plugins("{permit: ~, score: {}, podGroupPostFilter: {}}")),
    "an unknown field of a plugin": Case(plugins("{score: {enabled: [{name: ImageLocality, args: {}}]}}")),
    # Arguments
    "arguments twice": Case(
        "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {}}, {name: NodeResourcesFit, args: {}}]}]\n"
    ),
    "arguments with their type": Case(
        args("NodeResourcesFit", "{apiVersion: kubescheduler.config.k8s.io/v1, kind: NodeResourcesFitArgs}")
    ),
    "arguments of another version": Case(args("NodeResourcesFit", "{apiVersion: kubescheduler.config.k8s.io/v1beta3}")),
    "arguments of another plugin": Case(args("NodeResourcesFit", "{kind: NodeAffinityArgs}")),
    "no arguments": Case(args("NodeResourcesFit", "~")),
    "arguments as a list": Case(args("NodeResourcesFit", "[]")),
    "an argument twice": Case(args("InterPodAffinity", "{hardPodAffinityWeight: 1, hardPodAffinityWeight: 2}")),
    "an argument with a point": Case(args("InterPodAffinity", "{hardPodAffinityWeight: 5.0}")),
    "an argument beyond int32": Case(args("DefaultPreemption", "{minCandidateNodesAbsolute: 2147483648}")),
    "an argument in another case": Case(args("InterPodAffinity", "{HardPodAffinityWeight: 5}")),
    "an empty type of arguments": Case(args("InterPodAffinity", "{apiVersion: '', kind: ''}")),
    "a null in a list": Case(args("NodeResourcesFit", "{ignoredResources: [~]}")),
    "a null among resources": Case(args("NodeResourcesBalancedAllocation", "{resources: [~]}")),
    "an unknown argument": Case(args("NodeResourcesFit", "{ignored: []}")),
    "arguments of what is off": Case(
        "profiles: [{plugins: {multiPoint: {disabled: [{name: NodeAffinity}]}},"
        " pluginConfig: [{name: NodeAffinity, args: {addedAffinity: {}}}]}]\n"
    ),
    "wrong arguments of what is off": Case(
        "profiles: [{plugins: {multiPoint: {disabled: [{name: NodeAffinity}]}},"
        " pluginConfig: [{name: NodeAffinity, args: {addedAffinity: 1}}]}]\n"
    ),
    "arguments of nobody": Case(args("Nobody", "{a: 1}"), "'Nobody' is not enabled in this profile"),
    "arguments for one that has none": Case(args("ImageLocality", "{a: 1}"), "ImageLocality takes no arguments"),
    # NodeResourcesFit
    "ignored resources": Case(
        args("NodeResourcesFit", "{ignoredResources: [example.com/a, b], ignoredResourceGroups: [example.com]}")
    ),
    "an ignored resource that is no name": Case(args("NodeResourcesFit", "{ignoredResources: ['a b']}")),
    "an ignored group with a slash": Case(args("NodeResourcesFit", "{ignoredResourceGroups: [a/b]}")),
    "an ignored resource as a number": Case(args("NodeResourcesFit", "{ignoredResources: [1]}")),
    "most allocated": Case(
        strategy("{type: MostAllocated, resources: [{name: cpu, weight: 3}, {name: nvidia.com/gpu}]}")
    ),
    "a strategy without a type": Case(strategy("{}")),
    "no strategy": Case(strategy("~")),
    "an unknown strategy": Case(strategy("{type: Fullest}")),
    "a resource's weight 101": Case(strategy("{type: LeastAllocated, resources: [{name: cpu, weight: 101}]}")),
    "a negative weight of a resource": Case(strategy("{type: LeastAllocated, resources: [{name: cpu, weight: -1}]}")),
    "a resource twice": Case(strategy("{type: LeastAllocated, resources: [{name: cpu}, {name: cpu, weight: 2}]}")),
    "a shape": Case(ratio("[{utilization: 0, score: 0}, {utilization: 100, score: 10}]")),
    "a shape of one point": Case(ratio("[{utilization: 50, score: 5}]")),
    "a shape without points": Case(ratio("[]")),
    "a shape that falls back": Case(ratio("[{utilization: 50, score: 0}, {utilization: 50, score: 1}]")),
    "a shape beyond 100": Case(ratio("[{utilization: 101, score: 0}]")),
    "a shape's score 11": Case(ratio("[{utilization: 1, score: 11}]")),
    "no shape where one is needed": Case(strategy("{type: RequestedToCapacityRatio}")),
    "a shape where none belongs": Case(strategy("{type: MostAllocated, requestedToCapacityRatio: {shape: []}}")),
    # NodeResourcesBalancedAllocation
    "balance of three": Case(
        args("NodeResourcesBalancedAllocation", "{resources: [{name: cpu}, {name: memory, weight: 1}, {name: a/b}]}")
    ),
    "balance of nothing": Case(args("NodeResourcesBalancedAllocation", "{resources: []}")),
    "balance with a weight": Case(args("NodeResourcesBalancedAllocation", "{resources: [{name: cpu, weight: 2}]}")),
    "balance of one twice": Case(args("NodeResourcesBalancedAllocation", "{resources: [{name: cpu}, {name: cpu}]}")),
    # NodeAffinity
    "an added label": Case(required("{matchExpressions: [{key: a, operator: In, values: [b]}]}")),
    "an added name": Case(required("{matchFields: [{key: metadata.name, operator: NotIn, values: [b]}]}")),
    "an added term that is empty": Case(required("{}")),
    "added terms, none": Case(required("")),
    "an added label without values": Case(required("{matchExpressions: [{key: a, operator: In}]}")),
    "an added label by Like": Case(required("{matchExpressions: [{key: a, operator: Like, values: [b]}]}")),
    "an added field by Gt": Case(required("{matchFields: [{key: metadata.name, operator: Gt, values: ['1']}]}")),
    "an added preference": Case(preferred("{weight: 5, preference: {matchExpressions: [{key: a, operator: Exists}]}}")),
    "an added preference that cannot be read": Case(
        preferred("{weight: 5, preference: {matchExpressions: [{key: a, operator: Gt, values: [x]}]}}")
    ),
    "an added preference of weight 0": Case(
        preferred("{weight: 0, preference: {matchExpressions: [{operator: Like}]}}")
    ),
    "an unknown field of affinity": Case(added("{required: {}}")),
    "an unknown field of a term": Case(required("{matchLabels: {a: b}}")),
    # InterPodAffinity
    "hard weight 0": Case(args("InterPodAffinity", "{hardPodAffinityWeight: 0}")),
    "hard weight unset": Case(args("InterPodAffinity", "{hardPodAffinityWeight: ~}")),
    "hard weight 101": Case(args("InterPodAffinity", "{hardPodAffinityWeight: 101}")),
    "no terms of others": Case(args("InterPodAffinity", "{ignorePreferredTermsOfExistingPods: true}")),
    "terms of others as text": Case(args("InterPodAffinity", "{ignorePreferredTermsOfExistingPods: 'yes'}")),
    # PodTopologySpread
    "own constraints": Case(constraint(f"{{maxSkew: 3, {_HOST}, minDomains: 2, nodeTaintsPolicy: Honor}}")),
    "own constraints, none": Case(spread("{defaultingType: List}")),
    "own constraints with System": Case(spread(f"{{defaultConstraints: [{{maxSkew: 3, {_HOST}}}]}}")),
    "another defaulting": Case(spread("{defaultingType: Cluster}")),
    "an empty defaulting": Case(spread("{defaultingType: ''}")),
    "a skew of 0": Case(constraint(f"{{maxSkew: 0, {_HOST}}}")),
    "no topology key": Case(constraint("{maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}")),
    "a wrong topology key": Case(constraint("{maxSkew: 1, topologyKey: 'a b', whenUnsatisfiable: ScheduleAnyway}")),
    "a wrong action": Case(constraint("{maxSkew: 1, topologyKey: a, whenUnsatisfiable: Wait}")),
    "a selector": Case(constraint(f"{{maxSkew: 1, {_HOST}, labelSelector: {{}}}}")),
    "a constraint twice": Case(constraint(f"{{maxSkew: 1, {_HOST}}}, {{maxSkew: 2, {_HOST}}}")),
    "an unknown field of a constraint": Case(constraint(f"{{maxSkew: 1, {_HOST}, minDomain: 1}}")),
    # VolumeBinding
    "no wait for volumes": Case(args("VolumeBinding", "{bindTimeoutSeconds: 0}")),
    "a negative wait for volumes": Case(args("VolumeBinding", "{bindTimeoutSeconds: -1}")),
    "a shape for volumes": Case(
        args("VolumeBinding", "{shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}")
    ),
    "an empty shape for volumes": Case(args("VolumeBinding", "{shape: []}")),
    "a wrong shape for volumes": Case(args("VolumeBinding", "{shape: [{utilization: 10}, {utilization: 5}]}")),
    # DefaultPreemption
    "candidates": Case(args("DefaultPreemption", "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 1}")),
    "no candidates": Case(args("DefaultPreemption", "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}")),
    "candidates 101 %": Case(args("DefaultPreemption", "{minCandidateNodesPercentage: 101}")),
    "negative candidates": Case(args("DefaultPreemption", "{minCandidateNodesAbsolute: -1}")),
    # What is not built
    "extenders": Case(
        "extenders: [{urlPrefix: 'http://localhost:1/'}]\n", "extenders: HTTP extenders of kube-scheduler: not"
    ),
    "devices": Case(
        args("DynamicResources", "{filterTimeout: 5s}"), "DynamicResources of kube-scheduler: not built yet"
    ),
}
