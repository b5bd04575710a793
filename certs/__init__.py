"""Certificates for local use and for the cluster."""
