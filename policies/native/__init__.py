"""Workload, PodGroup and pods of Kubernetes 1.35 to 1.37, checked as the API server of that version would.

A version is a file of schemas; what a schema can't say stands in `updates` (what may change), `trees` (a Workload's
templates together), `metadata` and `admitting` (what plugins look up).
"""

from policies.native.problems import Problem
from policies.native.validating import find_dropped, validate

__all__ = ["Problem", "find_dropped", "validate"]
