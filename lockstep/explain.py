"""`lockstep explain`: what would become of an LWS, without a cluster, with the reason for every choice."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import yaml

from gangs import keys
from lockstep.exit_codes import BAD_CONFIGURATION, WRONG_USAGE, fail
from lockstep.files import WrongUsage, read_named
from lockstep.rehearsal import Rehearsal, Stage
from policies.findings import Source
from policies.objects import Subject
from policies.reading import Unreadable, read_objects
from reconciler.objects import LeaderWorkerSet
from schedulers.configuration import Configuration, Misconfigured, load_configuration
from schedulers.contract import Provider

FEWEST: Final = 2
"""Pods of the smallest replica with a worker."""

LWS: Final = f"{keys.LWS_API_VERSION}/{keys.LWS_KIND}"

Json = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="manifests, YAML or JSON; - is standard input")
    parser.add_argument("--config", metavar="FILE", help="the configuration file")
    parser.add_argument("--output", choices=("text", "json"), default="text", help="format (text)")


def run(args: argparse.Namespace) -> int:
    """Explain every LWS of the files; give the exit code."""
    try:
        configuration = load_configuration(args.config)
        found = [subject for file in args.files for subject in read_objects(read_named(file), file)]
        explained = [explain(subject, configuration) for subject in found if kind_of(subject) == LWS]
    except Misconfigured as error:
        return fail(str(error), BAD_CONFIGURATION)
    except (Unreadable, WrongUsage) as error:
        return fail(str(error), WRONG_USAGE)
    if not explained:
        return fail(f"{', '.join(args.files)}: must hold a {LWS}, got none", WRONG_USAGE)
    if args.output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode({"leaderWorkerSets": explained})).decode() + "\n")
    else:
        sys.stdout.write("\n".join("\n".join(text_of(explanation)) for explanation in explained) + "\n")
    return 0


def explain(manifest: Subject, configuration: Configuration) -> Json:
    """Explain one LWS.

    Returns:
        JSON: `name`, `namespace`, `source`, `replicas`, `size`, `provider` (`name`, `because`), `lateWorkers`
        (`because`, `promise`; null when they come with the leader), `groupName` (`pattern`, `because`), `pods`
        (`name`, `role`, `patch`), `groups` (`leader`, `object`, `raised`, `because`), `gates` (`leader`, `labels`,
        `annotations`, `because`), `remarks`.

    Raises:
        Unreadable: it is no LWS that the API server would take.
    """
    stage = stage_of(manifest, configuration)
    replicas = 1 if stage.lws.spec.replicas is None else stage.lws.spec.replicas
    played = [stage.rehearse(index) for index in range(replicas)]
    provider = stage.provider
    return {
        "name": stage.lws.metadata.name,
        "namespace": stage.lws.metadata.namespace or "default",
        "source": {"file": source_of(manifest).file, "line": source_of(manifest).line},
        "replicas": replicas,
        "size": stage.size,
        "provider": {"name": provider.name if provider else None, "because": why_provider(stage, configuration)},
        "lateWorkers": why_late(stage, provider),
        "groupName": None if provider is None else name_rule(stage),
        "pods": [pod for rehearsal in played for pod in pods_of(stage, rehearsal)],
        "groups": [group_of(stage, rehearsal) for rehearsal in played if rehearsal.group is not None],
        "gates": [gate_of(rehearsal) for rehearsal in played if rehearsal.declared is not None],
        "remarks": sorted({remark for rehearsal in played for remark in (*rehearsal.warnings, *rehearsal.remarks)}),
    }


def kind_of(manifest: Subject) -> str:
    """Give `<apiVersion>/<kind>`."""
    return f"{manifest.content.get('apiVersion', '')}/{manifest.content.get('kind', '')}"


def source_of(manifest: Subject) -> Source:
    """Say where a manifest stands."""
    return manifest.source or Source("", 1)


def stage_of(manifest: Subject, configuration: Configuration) -> Stage:
    """Set the stage for a manifest's LWS."""
    source = source_of(manifest)
    try:
        lws = msgspec.convert(manifest.content, LeaderWorkerSet)
    except msgspec.ValidationError as error:
        raise Unreadable(source.file, source.line, f"must be a {keys.LWS_KIND}, got {error}") from error
    for path, given in (
        ("metadata.name", lws.metadata.name),
        ("spec.leaderWorkerTemplate.workerTemplate", lws.spec.leader_worker_template.worker_template.spec.containers),
    ):
        if not given:
            raise Unreadable(source.file, source.line, f"{path}: must be set, got nothing")
    return Stage(lws, dict(manifest.content), configuration)


def why_provider(stage: Stage, configuration: Configuration) -> str:
    """Say why the pods are whose."""
    name = stage.scheduler_name("leader")
    said = f'spec.schedulerName is "{name}"' if name else "spec.schedulerName is not set, which means default-scheduler"
    if stage.pod_template("leader").get("metadata", {}).get("labels", {}).get(keys.LOCKSTEP_GANG) == keys.OPTED_OUT:
        return f'the pod template\'s label {keys.LOCKSTEP_GANG} is "{keys.OPTED_OUT}": its pods are left alone'
    if stage.provider is None:
        known = ", ".join(sorted(configuration.schedulers))
        return f"{said}: pods are left alone, because only {known} are configured"
    if stage.scheduler_name("worker") != name:
        other = stage.scheduler_name("worker")
        return f'{said} for the leader, but "{other}" for its workers: both templates must name one scheduler'
    return said


def why_late(stage: Stage, provider: Provider | None) -> Json | None:
    """Say why workers come late and what the scheduler promises then."""
    if stage.why_late is None:
        return None
    return {"because": stage.why_late, "promise": None if provider is None else provider.late_workers.promise}


def name_rule(stage: Stage) -> Json:
    """Say how groups are named."""
    because = "the last ten digits follow from a key drawn for each leader, so that no name is used twice"
    return {"pattern": stage.group_name(0).replace("-0-", "-<index>-", 1), "because": because}


def pods_of(stage: Stage, rehearsal: Rehearsal) -> Iterator[Json]:
    """Show what the webhook does to each pod of a replica."""
    yield {"name": rehearsal.name, "role": "leader", "patch": rehearsal.patches["leader"]}
    for number in range(1, stage.size):
        yield {"name": f"{rehearsal.name}-{number}", "role": "worker", "patch": rehearsal.patches["worker"]}


def group_of(stage: Stage, rehearsal: Rehearsal) -> Json:
    """Show one group object and what becomes of its minimum."""
    if stage.why_late is None:
        because = f"the minimum is the size: all {stage.size} pods are placed or none"
    else:
        because = f"the minimum is 1 until the workers are there, because of {stage.why_late}, and {stage.size} then"
    return {"leader": rehearsal.name, "object": rehearsal.group, "raised": rehearsal.raised, "because": because}


def gate_of(rehearsal: Rehearsal) -> Json:
    """Show what is written on every pod of a replica when its gate is opened."""
    because = f"{keys.GATE} holds each pod until it is its replica's turn: one is opened at a time, the oldest first"
    return {"leader": rehearsal.name, **(rehearsal.declared or {}), "because": because}


def text_of(explanation: Json) -> Iterator[str]:
    """Render an explanation for people."""
    source, provider = explanation["source"], explanation["provider"]
    yield (
        f"LeaderWorkerSet {explanation['namespace']}/{explanation['name']} ({source['file']}:{source['line']}): "
        f"{explanation['replicas']} replicas of {explanation['size']} pods"
    )
    yield f"  provider: {provider['name'] or 'none'}, because {provider['because']}"
    late = explanation["lateWorkers"]
    yield (
        "  workers:  come with their leader" if late is None else f"  workers:  come late, because of {late['because']}"
    )
    if late is not None and late["promise"]:
        yield f"            {late['promise']}"
    if explanation["groupName"] is not None:
        yield f"  name:     {explanation['groupName']['pattern']}: {explanation['groupName']['because']}"
    for pod in explanation["pods"][:2][: explanation["size"]]:
        yield from _pod_lines(pod, explanation["size"])
    yield from _group_lines(explanation["groups"])
    yield from _gate_lines(explanation["gates"])
    yield from (f"  remark:   {remark}" for remark in explanation["remarks"])


def _pod_lines(pod: Json, size: int) -> Iterator[str]:
    name = pod["name"] if pod["role"] == "leader" or size == FEWEST else f"{pod['name']} to -{size - 1}"
    yield f"  {pod['role']} {name}:" + ("" if pod["patch"] else " left as it is")
    for operation in pod["patch"]:
        path = operation["path"].replace("~1", "/")
        yield f"    {operation['op']} {path} = {msgspec.json.encode(operation['value']).decode()}"


def _group_lines(groups: list[Json]) -> Iterator[str]:
    if not groups:
        yield "  group:    none"
        return
    first, *others = groups
    yield f"  group of {first['leader']}: {first['because']}"
    yield from (f"    {line}" for line in yaml.safe_dump(first["object"], sort_keys=False).splitlines())
    if first["raised"] is not None:
        yield f"    then: {msgspec.json.encode(first['raised']['spec']).decode()}"
    if others:
        yield f"  groups of {others[0]['leader']} to {others[-1]['leader']}: the same under their own names"


def _gate_lines(gates: list[Json]) -> Iterator[str]:
    if not gates:
        return
    first, *others = gates
    yield f"  gates of {first['leader']}: {first['because']}; then stands on each pod"
    for what in ("labels", "annotations"):
        yield from (f"    {what.removesuffix('s')} {key} = {value}" for key, value in first[what].items())
    if others:
        yield f"  gates of {others[0]['leader']} to {others[-1]['leader']}: the same"
