"""The policy microservice: the API server's `/validate`, a REST API, and a page to read the rules."""
