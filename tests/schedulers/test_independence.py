"""No provider knows another."""

import ast
from pathlib import Path

import pytest

import schedulers
from schedulers.registry import all_providers

FOLDER = Path(next(iter(schedulers.__path__)))


@pytest.mark.parametrize("name", sorted(all_providers()))
def test_a_provider_imports_no_other(name: str) -> None:
    """What two schedulers have in common stands in the contract, not in one of them."""
    tree = ast.parse((FOLDER / f"{name}.py").read_text())
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    others = {f"schedulers.{other}" for other in all_providers() if other != name}
    assert not imported & others
