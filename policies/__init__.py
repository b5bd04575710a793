"""Rules about groups and LWS pods: one registry, one verdict shape, one report."""
