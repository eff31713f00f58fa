// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build check

package main

import "bugs/left"

func init() { atEnd = left.Report }
