"""InterPodAffinity: nodes chosen by the Pods that run there, and by what those Pods say."""
