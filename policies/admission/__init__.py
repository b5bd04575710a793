"""ValidatingAdmissionPolicy and its bindings, judged here as the API server judges them."""
