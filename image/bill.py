"""The bill of materials: what the image consists of, as CycloneDX 1.6 JSON.

Wheels are listed with the digest of the file that was installed, libraries with the Debian package they are from.
"""

import hashlib
import json
import platform
import subprocess
import uuid
from collections.abc import Iterable, Iterator
from email.parser import BytesParser
from pathlib import Path
from typing import Final
from zipfile import ZipFile

FORMAT: Final = "1.6"
DPKG: Final = Path("/usr/bin/dpkg-query")
OURS: Final = "lockstep"


def bill_of_materials(wheels: Path, libraries: Iterable[Path], base: str) -> str:
    """Write the bill.

    Args:
        wheels: folder of the wheels installed, ours among them.
        libraries: shared libraries taken from the base image.
        base: the base image, by digest.
    """
    parts = sorted(of_wheels(wheels), key=lambda part: str(part["bom-ref"]))
    ours = next(part for part in parts if part["name"] == OURS)
    others = [part for part in parts if part is not ours]
    others += [of_python(base), *of_packages(libraries)]
    digest = hashlib.sha256(json.dumps([ours, others], sort_keys=True).encode()).digest()
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": FORMAT,
        # The same parts give the same number, so that the image can be made again byte by byte.
        "serialNumber": f"urn:uuid:{uuid.UUID(bytes=digest[:16], version=4)}",
        "version": 1,
        "metadata": {"component": ours | {"type": "application"}},
        "components": others,
        "dependencies": [{"ref": ours["bom-ref"], "dependsOn": sorted(str(part["bom-ref"]) for part in others)}],
    }
    return json.dumps(bill, indent=1) + "\n"


def of_wheels(wheels: Path) -> Iterator[dict[str, object]]:
    """Describe each wheel by its own metadata and its digest."""
    for path in wheels.glob("*.whl"):
        with ZipFile(path) as archive:
            name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            head = BytesParser().parsebytes(archive.read(name), headersonly=True)
        url = f"pkg:pypi/{head['Name'].lower().replace('_', '-')}@{head['Version']}"
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        yield (
            _part(head["Name"], head["Version"], url)
            | {"hashes": [{"alg": "SHA-256", "content": content}]}
            | {"licenses": [{"license": {"name": text}} for text in (_licence(head["License-Expression"]),) if text]}
        )


def of_python(base: str) -> dict[str, object]:
    """Describe the interpreter."""
    version = platform.python_version()
    where = [{"name": "lockstep:base-image", "value": base}]
    return _part("cpython", version, f"pkg:generic/cpython@{version}") | {"properties": where}


def of_packages(libraries: Iterable[Path]) -> list[dict[str, object]]:
    """Describe the Debian packages that libraries are from; a library of Python itself is from none."""
    owners = {owner for path in libraries if (owner := _owner(path))}
    return [_package(owner) for owner in sorted(owners)]


def _owner(path: Path) -> str:
    # Packages name files by the path from before /lib became a link, or from after it.
    for name in dict.fromkeys((str(path), str(path.resolve()), str(path.resolve()).removeprefix("/usr"))):
        done = subprocess.run([str(DPKG), "--search", name], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.partition(": ")[0].partition(",")[0]
    return ""


def _package(owner: str) -> dict[str, object]:
    form = "${Package}\t${Version}\t${Architecture}"
    done = subprocess.run(
        [str(DPKG), "--show", f"--showformat={form}", owner], capture_output=True, text=True, check=True
    )
    name, version, architecture = done.stdout.split("\t")
    return _part(name, version, f"pkg:deb/debian/{name}@{version}?arch={architecture}")


def _part(name: str, version: str, url: str) -> dict[str, object]:
    return {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}


def _licence(text: str | None) -> str:
    return " ".join((text or "").split())
