"""Names as Kubernetes allows them: label keys, label values, globs over namespaces.

Source: k8s.io/apimachinery/pkg/util/validation, IsQualifiedName and IsValidLabelValue.
"""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_NAMESPACE_GLOB: Final = re.compile(r"(?:[-a-z0-9*?]|\[!?[-a-z0-9]+\])+")


def is_label_key(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        return False
    return _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    return text == "" or _NAME.fullmatch(text) is not None


def is_namespace_glob(text: str) -> bool:
    return len(text) <= 253 and _NAMESPACE_GLOB.fullmatch(text) is not None
