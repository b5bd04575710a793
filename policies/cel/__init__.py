"""Kubernetes' dialect of CEL on Google's engine: checked at load, lowered to what both evaluate alike."""
