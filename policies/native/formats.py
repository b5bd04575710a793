"""Names as Kubernetes wants them: what each format is called in the schemas, its test and its rule in words.

Source: k8s.io/apimachinery pkg/api/validate/content.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

LONGEST_LABEL: Final = 63
LONGEST_SUBDOMAIN: Final = 253
LONGEST_QUALIFIED: Final = 63

_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_CONDITION_REASON = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")


def is_label(text: str) -> bool:
    """Tell a DNS-1123 label."""
    return len(text) <= LONGEST_LABEL and _LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Tell a DNS-1123 subdomain."""
    if len(text) > LONGEST_SUBDOMAIN:
        return False
    return all(_LABEL.fullmatch(part) for part in text.split("."))


def is_path_segment(text: str) -> bool:
    """Tell a text that can stand in a URL path."""
    return text not in (".", "..") and not {"/", "%"} & set(text)


def is_label_key(text: str) -> bool:
    """Tell a label key: an optional subdomain and "/", then a qualified name."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_subdomain(prefix):
        return False
    return len(name) <= LONGEST_QUALIFIED and _QUALIFIED.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Tell a label's value; empty is one."""
    return text == "" or (len(text) <= LONGEST_QUALIFIED and _QUALIFIED.fullmatch(text) is not None)


def is_condition_reason(text: str) -> bool:
    """Tell a condition's reason."""
    return _CONDITION_REASON.fullmatch(text) is not None


FORMATS: Final[Mapping[str, tuple[Callable[[str], bool], str]]] = {
    "dns-label": (is_label, "be a DNS label of at most 63 characters"),
    "dns-subdomain": (is_subdomain, "be a DNS subdomain of at most 253 characters"),
    "path-segment": (is_path_segment, 'be a name without "/" and "%" that is not "." or ".."'),
    "label-key": (is_label_key, "be a label key"),
    "condition-reason": (is_condition_reason, "be a word of letters, digits, _, comma and colon"),
}
