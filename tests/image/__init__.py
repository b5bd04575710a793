"""Tests of the container image."""
