"""Settings of all tests."""

from hypothesis import settings

# A busy machine is no failure: examples are not timed.
settings.register_profile("lockstep", deadline=None)
settings.load_profile("lockstep")
