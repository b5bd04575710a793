"""Tests of policies.cel."""
