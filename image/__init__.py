"""Makes the container image out of an installation; run in the build stage."""
