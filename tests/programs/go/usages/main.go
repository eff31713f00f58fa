// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// Every kind of operation that a model of concurrency usage has. A comment "want: OBJECT OPERATION" names what is
// in its line, "case: N" the number by which the runtime knows a case of a select.
package main

import (
	"sync"
	"time"
)

type box struct {
	unrelated [4]int
	mu        sync.Mutex
	rw        sync.RWMutex
	n         int
}

type queue[T any] struct {
	items chan T
	mu    *sync.Mutex
}

//go:noinline
func channels(in, out chan int, size int) int {
	made := make(chan int, size) // want: channel make
	made <- 1                    // want: channel send
	v := <-in                    // want: channel recv
	w, ok := <-made              // want: channel recv
	if ok {
		out <- v + w // want: channel send
	}
	close(made) // want: channel close
	sum := 0
	for x := range in { // want: channel range
		sum += x
	}
	for range made { // want: channel range
		sum++
	}
	for {
		x, more := <-in // want: channel recv
		if !more {
			break
		}
		sum += x
	}
	select { // of one case: nothing but that case
	case x := <-out: // want: channel recv
		sum += x
	}
	return sum
}

//go:noinline
func selects(a, b, c chan int, nothing <-chan time.Time) int {
	v := 0
	select { // want: channel select
	case v = <-a: // case: 3
	case b <- 2: // case: 0
	case x, ok := <-c: // case: 2
		if ok {
			v = x
		}
	case <-nothing: // case: 1
		v = 4
	}
	select { // want: channel select
	case a <- 1: // case: 0
	case v = <-b: // case: 1
	default:
	}
	select {
	case a <- 7: // want: channel select; case: 0
	default:
	}
	select {
	case v = <-c: // want: channel select; case: 0
	default:
	}
	return v
}

//go:noinline
func locks(b *box) int {
	b.mu.Lock() // want: mutex lock
	b.n++
	b.mu.Unlock() // want: mutex unlock
	b.rw.RLock()  // want: rwmutex rlock
	n := b.n
	b.rw.RUnlock() // want: rwmutex runlock
	b.rw.Lock()    // want: rwmutex lock
	b.n = n + 1
	b.rw.Unlock()       // want: rwmutex unlock
	if b.mu.TryLock() { // want: mutex trylock
		b.n = 4
		b.mu.Unlock() // want: mutex unlock
	}
	if b.rw.TryRLock() { // want: rwmutex tryrlock
		n = b.n
		b.rw.RUnlock() // want: rwmutex runlock
	}
	if b.rw.TryLock() { // want: rwmutex trylock
		b.n = n
		b.rw.Unlock() // want: rwmutex unlock
	}
	return b.n
}

//go:noinline
func deferred(b *box) int {
	b.mu.Lock()         // want: mutex lock
	defer b.mu.Unlock() // want: mutex unlock
	if b.n > 3 {
		return b.n * 2
	}
	for i := 0; i < b.n; i++ {
		b.rw.RLock()         // want: rwmutex rlock
		defer b.rw.RUnlock() // want: rwmutex runlock
	}
	return b.n
}

// Inlined where it is called: twice in the code, once in the source.
func tell(c chan<- int, v int) {
	c <- v // want: channel send
}

func (q *queue[T]) put(item T) {
	q.mu.Lock()     // want: mutex lock
	q.items <- item // want: channel send
	q.mu.Unlock()   // want: mutex unlock
}

//go:noinline
func others(b *box, group *sync.WaitGroup, once *sync.Once, cond *sync.Cond, c chan int) {
	group.Add(2) // want: waitgroup add
	go func() {  // want: goroutine go
		defer group.Done() // want: waitgroup done
		b.mu.Lock()        // want: mutex lock
		cond.Wait()        // want: cond wait
		b.mu.Unlock()      // want: mutex unlock
	}()
	go worker(group)    // want: goroutine go
	once.Do(initialise) // want: once do
	time.Sleep(1000)    // want: time sleep
	tell(c, 1)
	tell(c, 2)
	cond.Signal()    // want: cond signal
	cond.Broadcast() // want: cond broadcast
	group.Wait()     // want: waitgroup wait
}

func initialise() { println("once") }

//go:noinline
func worker(group *sync.WaitGroup) {
	group.Done() // want: waitgroup done
}

//go:noinline
func stop(forever bool) {
	if forever {
		select {} // want: channel select
	}
}

func main() {
	c := make(chan int, 4) // want: channel make
	b := &box{}
	var group sync.WaitGroup
	var once sync.Once
	cond := sync.NewCond(&b.mu)
	numbers := queue[int]{make(chan int, 4), &b.mu}        // want: channel make
	words := queue[string]{make(chan string, 4), &b.mu}    // want: channel make
	go func() { println(channels(c, c, b.n), locks(b)) }() // want: goroutine go
	println(selects(c, c, c, nil), deferred(b))
	numbers.put(1)
	words.put("a")
	others(b, &group, &once, cond, c)
	stop(b.n > 100)
}
