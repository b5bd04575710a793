"""The queue of Kueue that an LWS names exists: else its pods stay gated, and nothing says why (kueue#7929)."""

from collections.abc import Iterator

from policies.findings import ERROR
from policies.registry import Breach, Case, breach, relation
from policies.shapes import LEADER_WORKER_SET, LOCAL_QUEUE, Thing

QUEUE_NAME = "kueue.x-k8s.io/queue-name"


def check(case: Case) -> Iterator[Breach]:
    """Look the queue up in the namespace of the LWS; a file set without any queue says nothing about them."""
    queue = case.thing.labels.get(QUEUE_NAME)
    known = case.snapshot.knows(LOCAL_QUEUE)
    if not queue or (not known and not case.snapshot.has_any(LOCAL_QUEUE)):
        return
    if case.snapshot.get(LOCAL_QUEUE, Thing, case.thing.metadata.namespace, queue) is None:
        rule = f"name a {LOCAL_QUEUE} of the namespace that exists"
        yield breach(f"metadata.labels[{QUEUE_NAME}]", rule, f'"{queue}"', certain=known)


RULE = relation(
    __name__,
    title="The queue of Kueue that an LWS names exists",
    why="Kueue keeps the gates of its pods closed, and no scheduler ever looks at them",
    severity=ERROR,
    blind="Whether its ClusterQueue is there and takes more; in files, queues that only the cluster has",
    kinds=[LEADER_WORKER_SET],
    check=check,
)
