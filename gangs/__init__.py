"""What a pod says about its replica, names, resource arithmetic, late workers: pure, no I/O."""
