"""`lockstep policy lint`: checks policies for a target Kubernetes version, without a cluster."""

import argparse
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from lockstep.exit_codes import FINDINGS, WRONG_USAGE, fail
from lockstep.files import WrongUsage, read_text
from policies.admission import BadPolicyError, load_policy_files
from policies.linting import lint
from policies.targets import GENERIC_WORKLOAD, NEWEST, BadTarget, parse_target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="policies, YAML; Lockstep's own without any")
    parser.add_argument("--target", metavar="VERSION", default=NEWEST, help=f"the Kubernetes they are for ({NEWEST})")


def run(args: argparse.Namespace) -> int:
    """Lint; 1 when there is something to do."""
    try:
        target = parse_target(args.target, GENERIC_WORKLOAD)
        texts = policy_texts(args.files)
    except (BadTarget, WrongUsage) as error:
        return fail(str(error), WRONG_USAGE)
    try:
        problems = lint(load_policy_files(texts), target)
    except BadPolicyError as error:
        sys.stdout.write(f"{error.file}:{error.line}: error: {error.problem}\n")
        return FINDINGS
    for problem in problems:
        sys.stdout.write(f"{problem.file}:{problem.line}: {problem.severity}: {problem.message}\n")
    sys.stdout.write(f"{len(texts)} files, {len(problems)} problems for Kubernetes {target.version}\n")
    return FINDINGS if problems else 0


def policy_texts(files: Sequence[str]) -> dict[str, str]:
    """Read some files, or Lockstep's own policies.

    Raises:
        WrongUsage: one can't be read.
    """
    if files:
        return {file: read_text(Path(file)) for file in files}
    own = sorted(resources.files("policies").iterdir(), key=lambda file: file.name)
    return {f"policies/{file.name}": file.read_text(encoding="utf-8") for file in own if file.name.endswith(".yaml")}
