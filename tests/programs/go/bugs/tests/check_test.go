// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build check

package tests

import (
	"os"
	"testing"

	"bugs/left"
)

func TestMain(m *testing.M) {
	status := m.Run()
	left.Report()
	os.Exit(status)
}
