"""Vane: a Kubernetes scheduler that places Pods by live business signals."""

__version__ = "0.1.0"
