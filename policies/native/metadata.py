"""Rules on metadata, those that a manifest can break.

Source: k8s.io/apimachinery pkg/api/validation/objectmeta.go.
"""

from collections.abc import Iterator
from typing import Final

from policies.native.formats import is_label, is_label_key, is_label_value, is_subdomain
from policies.native.preparing import Json
from policies.native.problems import FORBIDDEN, INVALID, REQUIRED, TOO_LONG, Problem, problem

MOST_ANNOTATION_BYTES: Final = 256 << 10
_SUBDOMAIN: Final = "be a DNS subdomain of at most 253 characters"
_KEY: Final = "have label keys as keys"


def metadata_problems(metadata: Json) -> Iterator[Problem]:
    """Find what is wrong with metadata by itself."""
    yield from _names(metadata)
    for key, value in metadata.get("labels", {}).items():
        if not is_label_key(key):
            yield problem("metadata.labels", INVALID, _KEY, key)
        if not is_label_value(value):
            yield problem("metadata.labels", INVALID, f"have a label value at {key[:80]}", value)
    yield from _annotations(metadata.get("annotations", {}))
    for name in metadata.get("finalizers", ()):
        if not is_label_key(name):
            yield problem("metadata.finalizers", INVALID, "have qualified names", name)
    yield from _owners(metadata.get("ownerReferences", []))


def metadata_change_problems(metadata: Json, stored: Json) -> Iterator[Problem]:
    """Find changes that no update may make."""
    for name in ("name", "namespace", "uid"):
        new, old = metadata.get(name), stored.get(name)
        if new != old and not (name == "uid" and None in (new, old)):
            yield problem(f"metadata.{name}", INVALID, f'stay "{old or ""}"', new)
    added = set(metadata.get("finalizers", ())) - set(stored.get("finalizers", ()))
    if added and "deletionTimestamp" in stored:
        yield problem("metadata.finalizers", FORBIDDEN, "get no new entry while the object ends", sorted(added))


def _names(metadata: Json) -> Iterator[Problem]:
    name, prefix, namespace = (metadata.get(key) for key in ("name", "generateName", "namespace"))
    if name is None and prefix is None:
        yield problem("metadata.name", REQUIRED, "be set, or generateName", None)
    if name is not None and not is_subdomain(name):
        yield problem("metadata.name", INVALID, _SUBDOMAIN, name)
    if prefix is not None and not is_subdomain(_as_begun(prefix)):
        yield problem("metadata.generateName", INVALID, "be the beginning of a DNS subdomain", prefix)
    if namespace is None:
        yield problem("metadata.namespace", REQUIRED, "be set", None)
    elif not is_label(namespace):
        yield problem("metadata.namespace", INVALID, "be a DNS label of at most 63 characters", namespace)


def _as_begun(prefix: str) -> str:
    """Judge a prefix by what may follow: a last dash is fine."""
    return prefix[:-1] + "a" if prefix.endswith("-") else prefix


def _annotations(annotations: dict[str, str]) -> Iterator[Problem]:
    for key in annotations:
        if not is_label_key(key.lower()):
            yield problem("metadata.annotations", INVALID, _KEY, key)
    size = sum(len(text.encode(errors="surrogatepass")) for pair in annotations.items() for text in pair)
    if size > MOST_ANNOTATION_BYTES:
        yield problem("metadata.annotations", TOO_LONG, f"have at most {MOST_ANNOTATION_BYTES} bytes", size)


def _owners(references: list[Json]) -> Iterator[Problem]:
    for index, reference in enumerate(references):
        version = reference.get("apiVersion", "v1")
        if version.count("/") > 1 or not version.rpartition("/")[2]:
            where = f"metadata.ownerReferences[{index}].apiVersion"
            yield problem(where, INVALID, "be <group>/<version> or <version>", version)
    controllers = [reference.get("name") for reference in references if reference.get("controller")]
    if len(controllers) > 1:
        yield problem("metadata.ownerReferences", INVALID, "have at most one controller", controllers)
