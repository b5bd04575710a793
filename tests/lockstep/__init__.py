"""Tests of lockstep."""
