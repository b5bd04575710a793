"""Tests of the native kinds' offline validation."""
