// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// Goroutines that are about to go on when the process ends, because of time: whatever is recorded of them, and however
// long tracectl holds them up, none of them is blocked forever.
//
//	healthy KIND PERIOD [LIFE]   lives for three periods, or so long
//	healthy                      prints the kinds
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"sort"
	"sync"
	"time"
)

// Each begins its goroutines, which live as long as the process, and returns.
var kinds = map[string]func(period time.Duration){
	"after":     after,
	"ticker":    ticker,
	"tick":      tick,
	"reset":     reset,
	"function":  function,
	"context":   timeout,
	"child":     child,
	"sleeper":   sleeper,
	"deadline":  deadline,
	"workers":   workers,
	"unlike":    unlike,
	"group":     group,
	"condition": condition,
	"lock":      lock,
	"pipeline":  pipeline,
	"orphan":    orphan,
	"begun":     begun,
	"talk":      talk,
}

func after(period time.Duration) {
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-time.After(period):
			case <-stop:
				return
			}
		}
	}()
}

func ticker(period time.Duration) {
	stop := make(chan struct{})
	ticks := time.NewTicker(period)
	go func() {
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
			case <-stop:
				return
			}
		}
	}()
}

func tick(period time.Duration) {
	go func() {
		for range time.Tick(period) {
		}
	}()
}

func reset(period time.Duration) {
	timer := time.NewTimer(period)
	go func() {
		for {
			<-timer.C
			timer.Reset(period)
		}
	}()
}

// Only the functions of timers send.
func function(period time.Duration) {
	due := make(chan int)
	go func() {
		for {
			time.AfterFunc(period, func() { due <- 1 })
			<-due
		}
	}()
}

func timeout(period time.Duration) {
	go func() {
		for {
			ctx, cancel := context.WithTimeout(context.Background(), period)
			<-ctx.Done()
			cancel()
		}
	}()
}

// What the goroutine waits for is closed because of its parent's deadline.
func child(period time.Duration) {
	go func() {
		for {
			ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(period))
			below, cancelBelow := context.WithCancel(ctx)
			<-below.Done()
			cancelBelow()
			cancel()
		}
	}()
}

// One goroutine sleeps, the other waits for it.
func sleeper(period time.Duration) {
	values := make(chan int)
	go func() {
		for {
			time.Sleep(period)
			values <- 1
		}
	}()
	go func() {
		for range values {
		}
	}()
}

// Reading gives up again and again; somebody waits for its answers.
func deadline(period time.Duration) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		panic(err)
	}
	answers := make(chan error)
	go func() {
		var buffer [1]byte
		for {
			conn.SetReadDeadline(time.Now().Add(period))
			_, err := conn.Read(buffer[:])
			answers <- err
		}
	}()
	go func() {
		for range answers {
		}
	}()
}

// The first ones have ended when the last one sends.
func workers(period time.Duration) {
	done := make(chan int)
	for i := 0; i < 12; i++ {
		pause := time.Duration(i) * period
		go func() {
			time.Sleep(pause)
			done <- 1
		}()
	}
	go func() {
		for {
			<-done
			go func() {
				time.Sleep(period)
				done <- 1
			}()
		}
	}()
}

// Two goroutines with nothing in common but the channel: one has ended, the other has not come to it yet.
func unlike(period time.Duration) {
	errors := make(chan error)
	go func() { errors <- nil }()
	go func() {
		for {
			time.Sleep(10 * period)
			errors <- nil
		}
	}()
	go func() {
		for {
			<-errors
		}
	}()
}

func group(period time.Duration) {
	go func() {
		for {
			var all sync.WaitGroup
			for i := 0; i < 3; i++ {
				pause := time.Duration(i) * period
				all.Add(1)
				go func() {
					defer all.Done()
					time.Sleep(pause)
				}()
			}
			all.Wait()
		}
	}()
}

func condition(period time.Duration) {
	var mutex sync.Mutex
	changed := sync.NewCond(&mutex)
	for i := 0; i < 2; i++ {
		go func() {
			mutex.Lock()
			for {
				changed.Wait()
			}
		}()
	}
	go func() {
		for range time.Tick(period) {
			changed.Broadcast()
		}
	}()
}

func lock(period time.Duration) {
	var mutex sync.RWMutex
	for i := 0; i < 2; i++ {
		go func() {
			for {
				mutex.Lock()
				time.Sleep(period)
				mutex.Unlock()
			}
		}()
		go func() {
			for {
				mutex.RLock()
				mutex.RUnlock()
				time.Sleep(period / 2)
			}
		}()
	}
}

func pipeline(period time.Duration) {
	first := make(chan int)
	in := first
	for i := 0; i < 3; i++ {
		from, to := in, make(chan int)
		in = to
		go func() {
			for value := range from {
				to <- value
			}
		}()
	}
	go func() {
		for range in {
		}
	}()
	go func() {
		for {
			<-time.After(period)
			first <- 1
		}
	}()
}

// Who made the goroutine that sends has ended.
func orphan(period time.Duration) {
	values := make(chan int)
	go func() {
		go func() {
			go func() {
				time.Sleep(10 * period)
				for {
					values <- 1
					time.Sleep(period)
				}
			}()
		}()
	}()
	go func() {
		for range values {
		}
	}()
}

type part struct{ pause time.Duration }

//go:noinline
func (p *part) run() { time.Sleep(p.pause) }

//go:noinline
func (p part) value(times int) { time.Sleep(p.pause * time.Duration(times)) }

type runner interface{ run() }

type box[T any] struct{ content T }

//go:noinline
func (b *box[T]) loop(pause time.Duration) {
	time.Sleep(pause)
	fmt.Sprint(b.content)
}

//go:noinline
func generic[T any](content T, pause time.Duration) {
	time.Sleep(pause)
	fmt.Sprint(content)
}

//go:noinline
func plain() { time.Sleep(time.Hour) }

//go:noinline
func withArguments(pause time.Duration, times int) { time.Sleep(pause * time.Duration(times)) }

func inlined(pause time.Duration) { time.Sleep(pause) }

//go:noinline
func start(f func()) { go f() }

// In all ways: the compiler begins most of these in a function of its own.
func begun(period time.Duration) {
	pause := 100 * period
	p := &part{pause}
	var r runner = p
	go plain()
	go withArguments(pause, 2)
	go p.run()
	go p.value(2)
	go inlined(pause)
	go generic("x", pause)
	go (&box[int]{1}).loop(pause)
	go func() { time.Sleep(pause) }()
	go func(times time.Duration) { time.Sleep(pause * times) }(2)
	f := p.run
	go f()
	start(p.run)
	start(r.run)
}

func talk(period time.Duration) {
	fmt.Println("begins to talk")
	fmt.Fprintln(os.Stderr, "begins to talk aloud")
	after(period)
}

func crash(period time.Duration) {
	talk(period)
	panic("enough")
}

func main() {
	if len(os.Args) < 3 {
		names := []string{}
		for name := range kinds {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			fmt.Println(name)
		}
		return
	}
	period, err := time.ParseDuration(os.Args[2])
	begin := kinds[os.Args[1]]
	if os.Args[1] == "crash" { // no healthy one
		begin = crash
	}
	if err != nil || begin == nil {
		panic("healthy KIND PERIOD")
	}
	begin(period)
	life := 3 * period
	if life < 2*time.Millisecond {
		life = 2 * time.Millisecond
	}
	if len(os.Args) == 4 {
		life, _ = time.ParseDuration(os.Args[3])
	}
	time.Sleep(life)
}
