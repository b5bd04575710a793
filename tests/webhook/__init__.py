"""Tests of webhook."""
