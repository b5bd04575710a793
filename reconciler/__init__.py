"""Keeps one group object per replica."""
