"""What `lockstep doctor` looks at, and one module for each thing that it checks."""
