"""One file per scheduler, and the contract they keep."""
