"""Tests of certs."""
