// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// One executable of many small programs: the first argument names the one to run. Linking each by itself would take
// longer than everything else that the tests do with them.
package main

import "os"

var programs = map[string]func(){}

// What is done when the program has ended; see check.go.
var atEnd = func() {}

func main() {
	if len(os.Args) != 2 || programs[os.Args[1]] == nil {
		println("usage: programs NAME")
		os.Exit(64)
	}
	programs[os.Args[1]]()
	atEnd()
}
