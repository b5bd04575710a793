"""AdmissionReview in, patch out; the server around it."""
