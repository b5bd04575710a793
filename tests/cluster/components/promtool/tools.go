//go:build tools

// Package tools pins the component's commands so that go.mod keeps their dependencies.
package tools

import _ "github.com/prometheus/prometheus/cmd/promtool"
