"""Tests of policies.admission."""
