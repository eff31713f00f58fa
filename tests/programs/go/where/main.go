// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// Goroutines that are at known places for ever: in channels, locks, a select, a sleep, a system call, a call of
// C, a loop, and many of them the same. Prints "ready" when they are; SIGQUIT makes the runtime tell where.
package main

/*
#include <unistd.h>
static void sleep_in_c(void) { for (;;) sleep(1000); }
*/
import "C"

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

var turns uint64

//go:noinline
func receives(from chan int) { <-from }

//go:noinline
func deep(left int, from chan int) int {
	if left == 0 {
		receives(from)
		return 1
	}
	var room [100]byte
	room[left%100] = byte(left)
	return deep(left-1, from) + int(room[left%100])
}

func selects(a, b chan int) {
	select {
	case <-a:
	case b <- 1:
	}
}

func loops() {
	for {
		turns++
	}
}

func inC() { C.sleep_in_c() }

func reads(fd int) {
	var b [1]byte
	syscall.Read(fd, b[:])
}

func locks(mu *sync.Mutex) {
	mu.Lock()
	turns++
}

func waits(group *sync.WaitGroup) { group.Wait() }

func main() {
	many, _ := strconv.Atoi(os.Args[1])
	never := make(chan int)
	var mu sync.Mutex
	var group sync.WaitGroup
	var ends [2]int

	mu.Lock()
	group.Add(1)
	syscall.Pipe(ends[:])
	for i := 0; i < many; i++ {
		go receives(never)
	}
	go deep(50, never)
	go selects(make(chan int), make(chan int))
	go loops()
	go inC()
	go reads(ends[0])
	go locks(&mu)
	go waits(&group)
	time.Sleep(300 * time.Millisecond)
	fmt.Println("ready")
	time.Sleep(time.Hour)
}
