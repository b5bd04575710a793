"""One module for each check: `find(seen)` gives what is wrong. Pure."""
