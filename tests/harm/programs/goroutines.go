// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// Goroutines whose stacks grow while they are traced (10,000 levels deep, and moved by it), garbage collections that
// scan them, loops that are preempted, panics that are recovered, deferred calls. No compiler switch counts calls
// here: the program counts its own, and prints "calls NAME NUMBER".
package main

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
)

const (
	descendCalls = iota
	allocateCalls
	spinCalls
	panickyCalls
	recoveringCalls
	workerCalls
	kinds
)

var names = [kinds]string{"descend", "allocate", "spin", "panicky", "recovering", "worker"}
var counts [kinds]int64

type node struct {
	next  *node
	value int
}

// The frame is big, so that stacks grow often; what it points to must survive the move.
//
//go:noinline
func descend(level int, up *int) int {
	atomic.AddInt64(&counts[descendCalls], 1)
	var pad [32]int
	pad[level%32] = *up + 1
	if level == 0 {
		return pad[0]
	}
	return descend(level-1, &pad[level%32])
}

//go:noinline
func allocate(n int) int {
	atomic.AddInt64(&counts[allocateCalls], 1)
	var list *node
	for i := 0; i < n; i++ {
		list = &node{list, i}
	}
	sum := 0
	for ; list != nil; list = list.next {
		sum += list.value
	}
	return sum
}

//go:noinline
func spin(n int) int {
	atomic.AddInt64(&counts[spinCalls], 1)
	sum := 0
	for i := 0; i < n; i++ {
		sum += i & 3
	}
	return sum
}

//go:noinline
func panicky(level int) int {
	atomic.AddInt64(&counts[panickyCalls], 1)
	if level == 0 {
		panic("bottom")
	}
	return panicky(level-1) + 1
}

//go:noinline
func recovering(level int) (result int) {
	atomic.AddInt64(&counts[recoveringCalls], 1)
	defer func() {
		if recover() != nil {
			result = 7
		}
	}()
	return panicky(level)
}

//go:noinline
func worker(id int, depth int) int {
	atomic.AddInt64(&counts[workerCalls], 1)
	zero := 0
	sum := 0
	for i := 0; i < 5; i++ {
		sum += descend(depth, &zero) + allocate(200) + recovering(i*3)
		runtime.Gosched()
	}
	runtime.GC()
	return sum + spin(100000)
}

func main() {
	var group sync.WaitGroup
	var total int64
	zero := 0

	for id := 0; id < 20; id++ {
		group.Add(1)
		go func(id int) {
			defer group.Done()
			atomic.AddInt64(&total, int64(worker(id, 50*id)))
		}(id)
	}
	group.Wait()
	deep := make(chan int)
	go func() { deep <- descend(10000, &zero) }()
	total += int64(<-deep)

	os.Stdout.WriteString("result " + strconv.FormatInt(total, 10) + "\n")
	for i, name := range names {
		os.Stdout.WriteString("calls " + name + " " + strconv.FormatInt(counts[i], 10) + "\n")
	}
	// Levels 0, 50, ... 950, each five times, 19900 and 7 five times a worker, 150000 by spin.
	if total != 5*(9500+20)+20*(5*(19900+7)+150000)+10001 {
		os.Exit(1)
	}
}
