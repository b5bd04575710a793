"""Assembles the file system of the image: Python, the libraries it needs, and an installation of Lockstep.

    python3 -m image.assemble --install /opt/lockstep --wheels wheels --base NAME@DIGEST /image

Run in the build stage by the Python that is to be in the image. Only the standard library is used. Everything keeps its
path, so that links and run paths stay right; what no process of ours needs is left out.
"""

import argparse
import compileall
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Final

from image.bill import bill_of_materials

USER: Final = 65532
MOUNT_POINTS: Final = ("dev", "proc", "sys", "run", "tmp", "var/run/secrets")

LEFT_OUT: Final = shutil.ignore_patterns(
    "__pycache__",
    "site-packages",
    "config-*",  # the static library and what is needed to link with it
    "ensurepip",
    "idlelib",
    "lib2to3",
    "test",
    "tests",
    "tkinter",
    "turtledemo",
    "turtle.py",
    "sqlite3",
    "curses",
    *(f"{name}.*" for name in ("_curses", "_curses_panel", "_dbm", "_gdbm", "_sqlite3", "nis", "readline")),
    *("_tkinter*", "_test*", "_xxtest*", "xxlimited*"),
)

FILES: Final = {
    "etc/passwd": f"root:x:0:0::/:/nonexistent\nlockstep:x:{USER}:{USER}::/nonexistent:/nonexistent\n",
    "etc/group": f"root:x:0:\nlockstep:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}


def main() -> int:
    """Assemble; give the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--install", type=Path, required=True, help="virtual environment with Lockstep in it")
    parser.add_argument("--wheels", type=Path, required=True, help="folder of the wheels that it was made from")
    parser.add_argument("--base", required=True, help="the base image, by digest")
    parser.add_argument("root", type=Path, help="folder to assemble in, made when it does not exist")
    args = parser.parse_args()
    root: Path = args.root
    root.mkdir(parents=True, exist_ok=True)
    copy_python(root)
    copy_install(args.install, root)
    libraries = sorted(needed_libraries(root))
    copy_libraries(libraries, root)
    write_files(root)
    compile_all(root)
    bill = bill_of_materials(args.wheels, libraries, args.base)
    below(root, args.install / "sbom.cdx.json").write_text(bill)
    set_times(root, int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
    return 0


def below(root: Path, path: Path) -> Path:
    """Where a path of this machine is in the image."""
    return root / path.relative_to("/")


def copy_python(root: Path) -> None:
    """Copy the interpreter and its standard library."""
    prefix, name = Path(sys.base_prefix), f"python{sys.version_info.major}.{sys.version_info.minor}"
    target = below(root, prefix / "bin")
    target.mkdir(parents=True)
    shutil.copy2(prefix / "bin" / name, target / name)
    for link in ("python3", "python"):
        (target / link).symlink_to(name)
    library = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(library, below(root, library), symlinks=True, ignore=LEFT_OUT)


def copy_install(install: Path, root: Path) -> None:
    """Copy the installation, without scripts of others, and without the asynchronous half of the client."""
    target = below(root, install)
    shutil.copytree(install, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "aio"))
    for script in (target / "bin").iterdir():
        if script.name != "lockstep" and not script.name.startswith("python"):
            script.unlink()


def needed_libraries(root: Path) -> Iterator[Path]:
    """Find the shared libraries outside of the image that what is in it is linked against, the loader included."""
    objects = [*root.rglob("*.so"), *root.rglob("*.so.*"), *root.glob(f"{sys.base_prefix[1:]}/bin/python3.*")]
    found = {line for path in objects for line in linked_with(path)}
    # Loaded by name when a thread ends, so that nothing is linked against it.
    found |= {path for path in linked_names() if path.name == "libgcc_s.so.1"}
    yield from (path for path in found if root not in path.parents)


def linked_with(path: Path) -> Iterator[Path]:
    """Ask the loader what an object is linked against."""
    done = subprocess.run(["/usr/bin/ldd", str(path)], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        left, _, right = line.strip().partition(" => ")
        name = (right or left).partition(" (")[0].strip()
        if name == "not found":
            raise SystemExit(f"{path}: must find its libraries, got none for {left}")
        if name.startswith("/"):
            yield Path(os.path.normpath(name))


def linked_names() -> Iterator[Path]:
    """List what the loader's cache knows for this architecture."""
    done = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines()[1:]:
        _, _, path = line.partition(" => ")
        if path.startswith("/"):
            yield Path(path)


def copy_libraries(libraries: list[Path], root: Path) -> None:
    """Copy libraries under the names they are asked for, with the links of the top level that lead to them."""
    for top in sorted({path.parts[1] for path in libraries}):
        if (link := Path("/") / top).is_symlink():
            (root / top).symlink_to(link.readlink())
    for path in libraries:
        target = below(root, path.parent.resolve() / path.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copy2(path.resolve(), target)


def write_files(root: Path) -> None:
    """Write the few files that libraries look for, and the loader's cache; make mount points."""
    for name in MOUNT_POINTS:
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc").mkdir(exist_ok=True)
    for name, text in FILES.items():
        (root / name).write_text(text)
    folders = sorted({f"/{path.parent.relative_to(root)}" for path in root.glob("**/*.so.*") if _is_of_system(path)})
    folders.append(f"{sys.base_prefix}/lib")
    (root / "etc/ld.so.conf").write_text("".join(f"{folder}\n" for folder in folders))
    cache = ["/sbin/ldconfig", "-X", "-f", str(root / "etc/ld.so.conf"), "-C", str(root / "etc/ld.so.cache")]
    subprocess.run(cache, check=True)


def _is_of_system(path: Path) -> bool:
    return "site-packages" not in path.parts


def compile_all(root: Path) -> None:
    """Compile every module: nothing can be written at run time, and times must not matter."""
    mode = PycInvalidationMode.UNCHECKED_HASH
    if not compileall.compile_dir(root, quiet=1, workers=0, stripdir=str(root), maxlevels=99, invalidation_mode=mode):
        raise SystemExit(f"{root}: must compile")


def set_times(root: Path, epoch: int) -> None:
    """Give every file the same time, so that the same input gives the same image."""
    for path in (root, *root.rglob("*")):
        os.utime(path, (epoch, epoch), follow_symlinks=False)


if __name__ == "__main__":
    sys.exit(main())
