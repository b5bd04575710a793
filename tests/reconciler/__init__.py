"""Tests of reconciler."""
