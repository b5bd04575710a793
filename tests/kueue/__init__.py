"""Lockstep beside Kueue, whose build is long: run by `make test-kueue`, not by `make test`."""
