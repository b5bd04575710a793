"""The parts of the real control plane: which Go commands make them and which files their modules bring."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "components"
"""One Go module per component: each pins other Kubernetes libraries, so they can't share one."""

_VERSION = "k8s.io/component-base/version"
_STAGES = ("node/fast/node-initialize", "node/heartbeat-with-lease/node-heartbeat-with-lease")
_POD_STAGES = ("pod/fast/pod-ready", "pod/fast/pod-complete", "pod/fast/pod-delete")


@dataclass(frozen=True)
class Command:
    """One Go command: its package, what `go build` calls the binary, what we call it."""

    package: str
    built_as: str
    name: str


@dataclass(frozen=True)
class Asset:
    """A file we need beside the binaries: documents of a Go module, joined into one file."""

    name: str
    module: str
    documents: tuple[str, ...]


@dataclass(frozen=True)
class Component:
    """One Go module of `components/` with everything that is taken out of it."""

    name: str
    commands: tuple[Command, ...]
    assets: tuple[Asset, ...] = ()
    ldflags: str = "-s -w"
    # Counted by the key itself, and only where there are any: what was built before there were tags stays found.
    tags: str = field(default="", repr=False)
    # Not in the representation: a clone elsewhere builds the same.
    modules: Path = field(default=FOLDER, repr=False)

    @property
    def folder(self) -> Path:
        """Where go.mod, go.sum and the Go files are."""
        return self.modules / self.name


def _set(*variables: str) -> str:
    return " ".join(("-s -w", *(f"-X {variable}" for variable in variables)))


def _kubernetes(name: str) -> Command:
    return Command(f"k8s.io/kubernetes/cmd/{name}", name, name)


def _crd(module: str, name: str) -> Asset:
    return Asset(f"crds/{name}", module, (f"config/crd/bases/{name}",))


def _joined_crds(name: str, module: str, folder: str, kinds: tuple[str, ...]) -> Asset:
    return Asset(f"crds/{name}.yaml", module, tuple(f"{folder}/{kind}.yaml" for kind in kinds))


def _older_api_server(minor: int, patch: int) -> Component:
    name = f"1.{minor}"
    return Component(
        f"kubernetes-{name}",
        (Command("k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver", f"kube-apiserver-{name}"),),
        ldflags=_set(
            f"{_VERSION}.gitVersion=v{name}.{patch}", f"{_VERSION}.gitMajor=1", f"{_VERSION}.gitMinor={minor}"
        ),
    )


_KOORDINATOR = "github.com/koordinator-sh/koordinator"
# All it ships: the plugins of its usual profile watch most of them, and not being served is an error to each.
_KOORDINATOR_KINDS = (
    "analysis.koordinator.sh_recommendations",
    "config.koordinator.sh_clustercolocationprofiles",
    "quota.koordinator.sh_elasticquotaprofiles",
    "scheduling.koordinator.sh_devices",
    "scheduling.koordinator.sh_podmigrationjobs",
    "scheduling.koordinator.sh_reservations",
    "scheduling.sigs.k8s.io_elasticquotas",
    "scheduling.sigs.k8s.io_podgroups",
    "slo.koordinator.sh_nodemetrics",
    "slo.koordinator.sh_nodeslos",
    "topology.node.k8s.io_noderesourcetopologies",
)
_KAI = "github.com/NVIDIA/KAI-scheduler"
_KAI_KINDS = (
    "scheduling.run.ai_podgroups",
    "scheduling.run.ai_queues",
    "scheduling.run.ai_bindrequests",
    "kai.scheduler_topologies",
)

_HELM = "helm.sh/helm/v3"
_PROMETHEUS = "github.com/prometheus"
_KUEUE = "sigs.k8s.io/kueue"
_KUEUE_KINDS = (
    "admissionchecks",
    "clusterqueues",
    "cohorts",
    "localqueues",
    "multikueueclusters",
    "multikueueconfigs",
    "provisioningrequestconfigs",
    "resourceflavors",
    "topologies",
    "workloadpriorityclasses",
    "workloads",
)

BASE = (
    Component(
        "kubernetes",
        tuple(map(_kubernetes, ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"))),
        # Without these three /version says v0.0.0, and clients that ask for it misjudge the server.
        ldflags=_set(f"{_VERSION}.gitVersion=v1.37.2", f"{_VERSION}.gitMajor=1", f"{_VERSION}.gitMinor=37"),
    ),
    Component("etcd", (Command("go.etcd.io/etcd/server/v3", "server", "etcd"),)),
    Component(
        "lws",
        (Command("sigs.k8s.io/lws/cmd", "cmd", "lws"),),
        (_crd("sigs.k8s.io/lws", "leaderworkerset.x-k8s.io_leaderworkersets.yaml"),),
    ),
    Component(
        "kwok",
        (Command("sigs.k8s.io/kwok/cmd/kwok", "kwok", "kwok"),),
        (
            Asset(
                "kwok-stages.yaml",
                "sigs.k8s.io/kwok",
                tuple(f"kustomize/stage/{stage}.yaml" for stage in _STAGES + _POD_STAGES),
            ),
        ),
    ),
)
"""A control plane of the newest Kubernetes with LWS and fake nodes: all that the demo needs."""

COMPONENTS = (
    *BASE,
    Component(
        "coscheduling",
        (
            Command("sigs.k8s.io/scheduler-plugins/cmd/scheduler", "scheduler", "coscheduling"),
            Command("sigs.k8s.io/scheduler-plugins/cmd/controller", "controller", "coscheduling-controller"),
        ),
        (
            _crd("sigs.k8s.io/scheduler-plugins", "scheduling.x-k8s.io_podgroups.yaml"),
            # The controller ends after two minutes where this one is not served.
            _crd("sigs.k8s.io/scheduler-plugins", "scheduling.x-k8s.io_elasticquotas.yaml"),
        ),
    ),
    Component(
        "koordinator",
        (Command(f"{_KOORDINATOR}/cmd/koord-scheduler", "koord-scheduler", "koordinator"),),
        (
            _joined_crds("koordinator", _KOORDINATOR, "config/crd/bases", _KOORDINATOR_KINDS),
            # A ConfigMap that holds the usual profile.
            Asset("koordinator-scheduler.yaml", _KOORDINATOR, ("config/manager/scheduler-config.yaml",)),
        ),
    ),
    Component(
        "kai",
        tuple(Command(f"{_KAI}/cmd/{name}", name, f"kai-{name}") for name in ("scheduler", "binder", "podgrouper")),
        (_joined_crds("kai", _KAI, "deployments/kai-scheduler/crds", _KAI_KINDS),),
    ),
    # Ours: what Kubernetes' own code makes of a quantity or a pod.
    Component("oracle", (Command(".", "oracle", "oracle"),)),
    _older_api_server(35, 4),
    _older_api_server(36, 3),
    Component(
        "helm",
        (Command(f"{_HELM}/cmd/helm", "helm", "helm"),),
        # What `helm template` and `helm lint` take for the cluster's version; without them it is 1.20.
        ldflags=_set(
            f"{_HELM}/internal/version.version=v3.22.0",
            f"{_HELM}/pkg/chartutil.k8sVersionMajor=1",
            f"{_HELM}/pkg/chartutil.k8sVersionMinor=37",
            f"{_HELM}/pkg/lint/rules.k8sVersionMajor=1",
            f"{_HELM}/pkg/lint/rules.k8sVersionMinor=37",
        ),
    ),
    Component(
        "promtool",
        (Command(f"{_PROMETHEUS}/prometheus/cmd/promtool", "promtool", "promtool"),),
        ldflags=_set(f"{_PROMETHEUS}/common/version.Version=3.15.0"),
        # Service discovery of two dozen clouds is half of the build, and rules need none of it.
        tags="remove_all_sd",
    ),
)
"""What `make test` needs."""

KUEUE = (
    *BASE,
    Component(
        "kueue",
        (Command(f"{_KUEUE}/cmd/kueue", "kueue", "kueue"),),
        (
            _joined_crds(
                "kueue", _KUEUE, "config/components/crd/bases", tuple(f"kueue.x-k8s.io_{kind}" for kind in _KUEUE_KINDS)
            ),
            # Webhook configurations that name a service.
            Asset("kueue-webhooks.yaml", _KUEUE, ("config/components/webhook/manifests.yaml",)),
        ),
        ldflags=_set(f"{_KUEUE}/pkg/version.GitVersion=v0.17.0"),
    ),
)
"""What `make test-kueue` needs: its build takes as long as half of all others."""
