//go:build tools

// Package tools pins the component's commands so that go.mod keeps their dependencies.
package tools

import _ "k8s.io/kubernetes/cmd/kube-apiserver"
