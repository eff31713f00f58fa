// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// Does every kind of operation many times, in several goroutines at once, and prints how often it has done each:
// what a recording of it must have. With an argument "service" it goes on until its standard input ends.
package main

import (
	"fmt"
	"io"
	"os"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

const (
	workers = 4
	rounds  = 25
)

type counter int32

var (
	creates, makes, sends, receives, closes, selects, blocks, sleeps          counter
	locks, tryLocks, unlocks                                                  counter
	writeLocks, tryWriteLocks, writeUnlocks, readLocks, tryReads, readUnlocks counter
	adds, dones, waits, condWaits, signals, broadcasts, onces                 counter
)

var names = map[string]*counter{
	"go": &creates, "chan make": &makes, "chan send": &sends, "chan recv": &receives, "chan close": &closes, "select": &selects,
	"block": &blocks, "sleep": &sleeps,
	"mutex lock": &locks, "mutex trylock": &tryLocks, "mutex unlock": &unlocks,
	"rwmutex lock": &writeLocks, "rwmutex trylock": &tryWriteLocks, "rwmutex unlock": &writeUnlocks,
	"rwmutex rlock": &readLocks, "rwmutex tryrlock": &tryReads, "rwmutex runlock": &readUnlocks,
	"waitgroup add": &adds, "waitgroup done": &dones, "waitgroup wait": &waits,
	"cond wait": &condWaits, "cond signal": &signals, "cond broadcast": &broadcasts, "once do": &onces,
}

func (c *counter) count() {
	atomic.AddInt32((*int32)(c), 1)
}

// Runs work in so many goroutines and waits for them.
func inParallel(count int, work func(number int)) {
	var group sync.WaitGroup

	adds.count()
	group.Add(count)
	for i := 0; i < count; i++ {
		number := i
		creates.count()
		go func() {
			work(number)
			dones.count()
			group.Done()
		}()
	}
	waits.count()
	group.Wait()
}

func channels() {
	makes.count()
	c := make(chan int)
	makes.count()
	full := make(chan int, 1)

	creates.count()
	go func() {
		inParallel(workers, func(number int) {
			for i := 0; i < rounds; i++ {
				sends.count()
				c <- i
			}
		})
		closes.count()
		close(c)
	}()
	receives.count()
	for range c {
		receives.count() // the next one
	}
	for i := 0; i < rounds; i++ {
		sends.count()
		select {
		case full <- i:
		default:
		}
		receives.count()
		select {
		case <-full:
		default:
		}
		receives.count()
		if _, more := <-c; more {
			panic("the channel is open")
		}
	}
}

func choices() {
	makes.count()
	left := make(chan int)
	makes.count()
	right := make(chan int, 2)
	makes.count()
	stop := make(chan bool)

	creates.count()
	go func() {
		for {
			selects.count()
			select {
			case <-left:
			case right <- 1:
			case <-stop:
				return
			}
		}
	}()
	inParallel(2, func(number int) {
		for i := 0; i < rounds; i++ {
			selects.count()
			select {
			case left <- i:
			case <-right:
			}
			selects.count()
			select {
			case left <- i:
			case <-right:
			default:
			}
		}
	})
	sends.count()
	stop <- true
}

type guarded struct {
	name            string
	mutex           sync.Mutex
	rw              sync.RWMutex
	changes, writes int
}

func (g *guarded) change() {
	locks.count()
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.changes++
	unlocks.count()
}

func (g *guarded) read() int {
	readLocks.count()
	g.rw.RLock()
	value := g.writes
	readUnlocks.count()
	g.rw.RUnlock()
	return value
}

//go:noinline
func throughInterface(l sync.Locker, lock, unlock *counter) {
	lock.count()
	l.Lock()
	unlock.count()
	l.Unlock()
}

func exclusion() {
	var many [3]guarded

	inParallel(workers, func(number int) {
		for i := 0; i < rounds; i++ {
			g := &many[i%len(many)]
			g.change()
			g.read()
			writeLocks.count()
			g.rw.Lock()
			g.writes += i
			writeUnlocks.count()
			g.rw.Unlock()
			throughInterface(&g.mutex, &locks, &unlocks)
			throughInterface(&g.rw, &writeLocks, &writeUnlocks)
			throughInterface(g.rw.RLocker(), &readLocks, &readUnlocks)
			attempts(g)
		}
	})
}

// Those that succeed are counted.
func attempts(g *guarded) {
	if g.mutex.TryLock() {
		tryLocks.count()
		unlocks.count()
		g.mutex.Unlock()
	}
	if g.rw.TryLock() {
		tryWriteLocks.count()
		writeUnlocks.count()
		g.rw.Unlock()
	}
	if g.rw.TryRLock() {
		tryReads.count()
		readUnlocks.count()
		g.rw.RUnlock()
	}
}

// The goroutines take turns.
func conditions() {
	var mutex sync.Mutex
	turn, changed := 0, sync.NewCond(&mutex)

	inParallel(workers, func(number int) {
		for i := 0; i < rounds/5; i++ {
			locks.count()
			mutex.Lock()
			for turn%workers != number {
				condWaits.count()
				changed.Wait()
			}
			turn++
			broadcasts.count()
			changed.Broadcast()
			signals.count()
			changed.Signal()
			unlocks.count()
			mutex.Unlock()
		}
	})
}

func onceEach() {
	var only [rounds]sync.Once

	for round := 0; round < 2; round++ {
		for i := range only {
			only[i].Do(onces.count)
		}
	}
}

func all() {
	channels()
	choices()
	exclusion()
	conditions()
	throughC()
}

func report() {
	var lines []string

	for name, c := range names {
		lines = append(lines, fmt.Sprintf("%s %d", name, atomic.LoadInt32((*int32)(c))))
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Println(line)
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "service" {
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin) // until somebody is recording
	}
	all()
	onceEach()
	creates.count()
	go func() {
		blocks.count()
		select {}
	}()
	sleeps.count()
	time.Sleep(time.Millisecond)
	report()
}
