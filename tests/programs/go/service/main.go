// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// A service whose goroutines leak or not, and a client of it.
//
//	service serve        prints its address; see the handlers below
//	service load URL SECONDS EVERY   asks for URL every so many milliseconds; prints how many answers were right
//	service get URL      prints one answer
//	service park N       N goroutines wait for ever; prints their number, and goes on
//	service churn N      N goroutines come and go; prints their number, and goes on
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"time"
)

type job struct {
	number int
	answer chan int
}

// Idle most of the time, and no leak.
func worker(jobs chan job) {
	for one := range jobs {
		one.answer <- one.number * 2
	}
}

func compute(number int, answer chan int) {
	time.Sleep(2 * time.Millisecond)
	answer <- number // nobody takes it when the handler has given up
}

// Gives up before the answer comes: its goroutine is left over.
func forgetful(w http.ResponseWriter, _ *http.Request) {
	answer := make(chan int)
	go compute(1, answer) // left over
	select {
	case number := <-answer:
		fmt.Fprintln(w, number)
	case <-time.After(time.Millisecond / 2):
		fmt.Fprintln(w, "late")
	}
}

// The same with room for the answer.
func careful(w http.ResponseWriter, _ *http.Request) {
	answer := make(chan int, 1)
	go compute(1, answer)
	select {
	case number := <-answer:
		fmt.Fprintln(w, number)
	case <-time.After(time.Millisecond / 2):
		fmt.Fprintln(w, "late")
	}
}

// Leaves a goroutine that waits for a deadline to come.
func patient(w http.ResponseWriter, _ *http.Request) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	go func() {
		<-ctx.Done()
		cancel()
	}()
	fmt.Fprintln(w, "later")
}

func serve() {
	jobs := make(chan job)
	mux := http.NewServeMux()
	mux.HandleFunc("/forgetful", forgetful)
	mux.HandleFunc("/careful", careful)
	mux.HandleFunc("/patient", patient)
	mux.HandleFunc("/more", func(w http.ResponseWriter, _ *http.Request) { // the pool grows, and is used
		go worker(jobs)
		fmt.Fprintln(w, "more")
	})
	mux.HandleFunc("/pool", func(w http.ResponseWriter, _ *http.Request) {
		one := job{21, make(chan int)}
		jobs <- one
		fmt.Fprintln(w, <-one.answer)
	})
	mux.HandleFunc("/goroutines", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, runtime.NumGoroutine())
	})
	for i := 0; i < 8; i++ {
		go worker(jobs)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("http://" + listener.Addr().String())
	panic(http.Serve(listener, mux))
}

func get(url string) (string, error) {
	response, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func load(url string, seconds, every time.Duration) {
	answers := 0
	for end := time.Now().Add(seconds); time.Now().Before(end); time.Sleep(every) {
		if _, err := get(url); err != nil {
			panic(err)
		}
		answers++
	}
	fmt.Println(answers)
}

func park(count int) {
	time.Sleep(time.Second)
	for i := 0; i < count; i++ {
		go func() { <-make(chan int) }()
		if i%1000 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

func churn(count int) {
	time.Sleep(time.Second)
	done := make(chan bool)
	for i := 0; i < count; i++ {
		go func() { done <- true }()
		<-done
	}
}

func number(at int) int {
	value, err := strconv.Atoi(os.Args[at])
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	switch os.Args[1] {
	case "serve":
		serve()
	case "get":
		text, err := get(os.Args[2])
		if err != nil {
			panic(err)
		}
		fmt.Print(text)
	case "load":
		load(os.Args[2], time.Duration(number(3))*time.Second, time.Duration(number(4))*time.Millisecond)
	case "park":
		park(number(2))
		fmt.Println(runtime.NumGoroutine())
		time.Sleep(time.Hour)
	case "churn":
		churn(number(2))
		fmt.Println(runtime.NumGoroutine())
		time.Sleep(time.Hour)
	}
}
