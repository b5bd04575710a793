"""Rules across objects, one file each."""
