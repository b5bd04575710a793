"""Runs commands in the assembled file system: an unprivileged user, a read-only root, no capabilities."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.image.dockerfile import Stage


@dataclass(frozen=True)
class Sandbox:
    """The image, ready to run.

    Attributes:
        root: its file system.
        stage: the last stage: user, environment, entry point.
        mounts: folder in the image -> folder of this machine, mounted to read.
    """

    root: Path
    stage: Stage
    mounts: Mapping[str, Path] = field(default_factory=dict)

    @property
    def user(self) -> int:
        """The user id that the image asks for."""
        return int(self.stage.one("USER").partition(":")[0])

    def command(self, *words: str) -> list[str]:
        """The command line that runs `words` in the image; the network is this machine's."""
        user = str(self.user)
        # Root takes another user's id first: in a user namespace of root's, that user would own root's files.
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if os.geteuid() == 0 else []
        sandbox = ["bwrap", "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        sandbox += [
            "--uid",
            user,
            "--gid",
            user,
            "--cap-drop",
            "ALL",
            "--new-session",
            "--ro-bind",
            str(self.root),
            "/",
        ]
        sandbox += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/run"]
        for inside, outside in self.mounts.items():
            sandbox += ["--ro-bind", str(outside), inside]
        sandbox += ["--remount-ro", "/run", "--chdir", "/", "--clearenv"]
        for name, value in self.stage.settings().items():
            sandbox += ["--setenv", name, value]
        return [*become, *sandbox, *words]

    def run(self, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run to its end."""
        return subprocess.run(self.command(*words), input=text, capture_output=True, text=True, check=False, timeout=60)

    def lockstep(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run the image's entry point with arguments."""
        return self.run(*self.stage.words("ENTRYPOINT"), *arguments, text=text)

    def python(self, code: str) -> str:
        """Run some code with the image's Python and give what it prints."""
        done = self.run("/opt/lockstep/bin/python", "-c", code)
        if done.returncode:
            raise AssertionError(done.stderr)
        return done.stdout
