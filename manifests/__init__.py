"""What is applied to a cluster: kustomize base and components, their rendered sum, and the chart made of them."""
