"""ValidatingAdmissionPolicy and its bindings, judged here as the API server judges them."""

from policies.admission.budgets import Budget
from policies.admission.decisions import Decision, PolicyDecision
from policies.admission.documents import ParamKind
from policies.admission.errors import BadPolicyError
from policies.admission.loading import load_policies, load_policy_files
from policies.admission.params import NO_PARAMS, ObjectParams, ParamSource
from policies.admission.policies import Policy
from policies.admission.requests import Admission, Kind, Resource, User, admission_from_review, admission_of

__all__ = [
    "NO_PARAMS",
    "Admission",
    "BadPolicyError",
    "Budget",
    "Decision",
    "Kind",
    "ObjectParams",
    "ParamKind",
    "ParamSource",
    "Policy",
    "PolicyDecision",
    "Resource",
    "User",
    "admission_from_review",
    "admission_of",
    "load_policies",
    "load_policy_files",
]
