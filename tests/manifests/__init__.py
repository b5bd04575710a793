"""Tests of `manifests`, and what renders it."""
