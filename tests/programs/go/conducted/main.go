// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// What tests/unit/collector/process/test_conductor_go.c conducts. Ends when standard input does.
//
//	conducted work    goroutines with channels, mutexes and garbage; exits with 0 if their sums are right
//	conducted turns   two goroutines that never call; prints where they spin, then how often the one that runs
//	                  has changed
package main

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

var (
	stop  uint32
	last  int
	turns int
)

//go:noinline
func spin(me int) {
	for atomic.LoadUint32(&stop) == 0 {
		if last != me {
			last = me
			turns++
		}
	}
}

func takeTurns() {
	var ended sync.WaitGroup
	f := spin
	start := **(**uintptr)(unsafe.Pointer(&f))
	end := start
	for runtime.FuncForPC(end).Entry() == start {
		end++
	}
	println(uint64(start), uint64(end))
	ended.Add(2)
	for i := 1; i <= 2; i++ {
		go func(me int) {
			spin(me)
			ended.Done()
		}(i)
	}
	untilInputEnds()
	atomic.StoreUint32(&stop, 1)
	ended.Wait()
	println(turns)
}

// A round: every worker gets numbers by a channel, allocates for them, and adds under a lock.
func round() int {
	var lock sync.Mutex
	var workers sync.WaitGroup
	numbers := make(chan int, 2)
	done := make(chan []int)
	sum := 0
	for i := 0; i < 4; i++ {
		workers.Add(2)
		go func() {
			defer workers.Done()
			for n := range numbers {
				part := make([]int, 100)
				part[n%100] = n
				done <- part
			}
		}()
		go func() {
			defer workers.Done()
			for part := range done {
				for _, n := range part {
					lock.Lock()
					sum += n
					lock.Unlock()
				}
			}
		}()
	}
	for n := 1; n <= 200; n++ {
		numbers <- n
	}
	close(numbers)
	for seen := 0; seen != 200*201/2; {
		lock.Lock()
		seen = sum
		lock.Unlock()
		runtime.Gosched()
	}
	close(done)
	workers.Wait()
	return sum
}

func work() {
	go func() {
		untilInputEnds()
		atomic.StoreUint32(&stop, 1)
	}()
	rounds := 0
	for ; atomic.LoadUint32(&stop) == 0; rounds++ {
		if round() != 200*201/2 {
			os.Exit(1)
		}
	}
	println(rounds)
}

func untilInputEnds() {
	var bytes [1]byte
	for {
		n, err := syscall.Read(0, bytes[:])
		if n == 0 && err == nil {
			return
		}
	}
}

func main() {
	if os.Args[1] == "turns" {
		takeTurns()
	} else {
		work()
	}
}
