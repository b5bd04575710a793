"""Tests of schedulers."""
