"""`lockstep policy export`: policies in the forms that sites apply."""

import argparse
import sys
from typing import Final

import yaml

from lockstep.exit_codes import BAD_CONFIGURATION, WRONG_USAGE, fail
from lockstep.files import WrongUsage
from lockstep.policy_lint import policy_texts
from policies.admission import BadPolicyError, load_policy_files
from policies.exporting import ExportError, export_bindings, export_mutating, export_static

ACTIONS: Final = ("Deny", "Warn", "Audit")
FORMS: Final = {
    "policies": "the policies and their own bindings, as they stand",
    "bindings": "bindings with other actions",
    "static": "manifests for the API server's own folder (Kubernetes 1.37)",
    "mutating": "MutatingAdmissionPolicies that stamp pods, for simple sites (Kubernetes 1.36)",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    summary = "; ".join(f"{name}: {words}" for name, words in FORMS.items())
    parser.add_argument("form", choices=tuple(FORMS), help=summary)
    parser.add_argument("files", nargs="*", metavar="FILE", help="policies, YAML; Lockstep's own without any")
    parser.add_argument("--actions", default="Deny", metavar="ACTIONS", help="of bindings: Deny, Warn, Audit (Deny)")


def run(args: argparse.Namespace) -> int:
    """Print the documents."""
    actions = tuple(action.strip() for action in args.actions.split(","))
    if not set(actions) <= set(ACTIONS) or len(set(actions)) != len(actions) or {"Deny", "Warn"} <= set(actions):
        rule = f"be some of {', '.join(ACTIONS)}, and not Deny with Warn"
        return fail(f'--actions: must {rule}, got "{args.actions}"', WRONG_USAGE)
    try:
        texts = policy_texts(args.files)
    except WrongUsage as error:
        return fail(str(error), WRONG_USAGE)
    try:
        sys.stdout.write(exported(args.form, texts, actions))
    except BadPolicyError as error:
        return fail(str(error), BAD_CONFIGURATION)
    except ExportError as error:
        return fail(str(error), WRONG_USAGE)
    return 0


def exported(form: str, texts: dict[str, str], actions: tuple[str, ...]) -> str:
    """Render one form as YAML documents.

    Raises:
        BadPolicyError: a policy can't be loaded.
        ExportError: there is no such form of it.
    """
    if form == "policies":
        return "".join(f"---\n# {file}\n{text}" for file, text in sorted(texts.items()))
    if form == "mutating":
        documents = export_mutating()
    else:
        policies = load_policy_files(texts)
        documents = export_static(policies, actions) if form == "static" else export_bindings(policies, actions)
    return yaml.safe_dump_all(documents, sort_keys=False, explicit_start=True, width=100)
