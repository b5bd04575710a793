"""Who talks to the API server, with tokens drawn at run time."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass(frozen=True)
class User:
    """A user of the API server: `key` is how tests call it, `name` what the API server and its audit log say."""

    key: str
    name: str
    groups: tuple[str, ...] = ()
    token: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)


def draw() -> dict[str, User]:
    """Everyone with a new token.

    The components have names of their own so that the audit log tells who wrote, and all rights. The other users have
    no right but those that `Access.grant` gives them.
    """
    masters = ("system:masters",)
    components = ("kube-controller-manager", "kube-scheduler", "lws", "kwok", "coscheduling", "koordinator", "kai")
    users = [User("admin", "admin", masters), *(User(name, name, masters) for name in components)]
    users += [User("reconciler", "lockstep-reconciler"), User("second", "lockstep-second")]
    users += [User("reader", "lockstep-reader"), User("mover", "lockstep-mover"), User("stranger", "stranger")]
    return {user.key: user for user in users}


def token_file(users: Iterable[User]) -> str:
    """The text of `--token-auth-file`: token, name, uid, groups."""
    return "".join(f'{user.token},{user.name},{user.name},"{",".join(user.groups)}"\n' for user in users)


def kubeconfig(user: User, server: str, ca: Path) -> str:
    """Return the text of a kubeconfig file (JSON is YAML too)."""
    name = user.key
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": "loopback", "cluster": {"server": server, "certificate-authority": str(ca)}}],
            "users": [{"name": name, "user": {"token": user.token}}],
            "contexts": [{"name": name, "context": {"cluster": "loopback", "user": name}}],
        },
        indent=1,
    )
