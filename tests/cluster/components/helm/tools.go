//go:build tools

// Package tools pins the component's commands so that go.mod keeps their dependencies.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
