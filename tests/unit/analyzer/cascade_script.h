/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs with sync events, written as text: a line for each stretch of a thread, "P.T" and then words.
 *
 *     call F   ret                             the functions of the thread's stream of calls; "@" stands for
 * "@plt" lock M   unlock M   trylock M            mutexes; rdlock, wrlock, rwunlock: of a reader-writer lock
 *     wait C M   woken C M                     a wait on a condition begins, and ends
 *     signal C   broadcast C   post S   down S (a wait for a semaphore, that ended)   arrive B   leave B
 *     create T   begin T   end   join T        threads of the process; "begin -": nobody made it
 *     fork P   start P   exit   reap P         processes, by their numbers
 *     channel K L                              K is one end of a connection, L the other one
 *     accept K   send K N   recv K N           N bytes, whose positions go on from one to the next
 *     empty K                                  there is nothing to be received
 *     read N   write N   io   sleep            of a file
 *     poll N                                   N descriptors are ready
 *     enqueue E   handler E N   handled        N: number of the declared function
 *     lost N
 *     N*[ ... ]                                the words between the brackets, N times
 *
 * Lines happen one after the other, a microsecond an event. Names are any words.
 */
#ifndef TRACECTL_TESTS_ANALYZER_CASCADE_SCRIPT_H
#define TRACECTL_TESTS_ANALYZER_CASCADE_SCRIPT_H

#include "store/api/tracestore.h"

/* Writes the script as a run; returns its number. Fails the test at what it cannot read. */
int64_t cascade_script_write(struct tracestore *store, const char *text);

/* The address of an object of a script. */
uint64_t cascade_script_object(const char *name);

#endif
