/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A small storage service with slow-down cascades to be predicted, and with decoys:
 *
 *     cascade_service FOLDER SIZE PLAN [hit]
 *
 * A master receives the heartbeats of a node; two clients send it requests; a peer wants a stream from it.
 * The node has a thread for each connection, one for heartbeats, one for events, and some for its own upkeep.
 * The PLAN says which of these are in it, in words with commas between: six bugs,
 *
 *  - copy1, copy2, copy3: a client has a file of SIZE blocks copied under a lock, and the heartbeat
 *    needs that lock; or one whose holder needs it; or one whose holder needs that
 *  - cleanup: an event removes SIZE files, and the peer's stream needs the thread of events
 *  - scan: a directory of SIZE files is looked through under a lock that a client's write needs
 *  - localise: a client's job waits, under a lock, for SIZE steps of a thread; another's task needs it
 *
 * and four decoys:
 *
 *  - constant: four blocks, always, are written under the heartbeat's lock
 *  - answer: a client's answer waits for what the same request makes, SIZE blocks
 *  - boot: copy1's lock was taken inside another one, before there was any thread
 *  - readers: SIZE entries are read under a lock that the heartbeat only reads, too
 *
 * With `hit` and one of copy1, copy2, copy3, cleanup, scan, localise the threads wait for each other so that
 * the chain is hit. Of each call of a sink is printed how long it took, and how many iterations of the loops
 * above there were meanwhile: "sink NAME MICROSECONDS ITERATIONS".
 */
#ifndef CASCADE_SERVICE_H
#define CASCADE_SERVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { BLOCK = 4096 };

extern const char *folder;
extern unsigned size;
extern bool hit;

/* Whether the plan has the word. */
bool plans(const char *word);

/* Sockets: a message is one letter. */
int listen_anywhere(uint16_t *ret_port);
int connect_to(uint16_t port);
void tell(int socket, char letter);
char hear(int socket); /* 0: the other end has gone */

/* Processes; each returns when its work is done. */
void be_node(int listener, uint16_t master);
void be_client(uint16_t node, const char *requests);
void be_peer(uint16_t node);

/* A moment that a thread lets others know of; without `hit` nobody waits for one. */
struct moment {
    pthread_mutex_t mutex;
    pthread_cond_t come;
    bool is_here;
};
#define MOMENT \
    { \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false \
    }
void moment_comes(struct moment *moment);
void moment_await(struct moment *moment);

/* Iterations so far of the loops that take long, in all processes. */
extern uint64_t *iterations;
#define COUNT_ITERATION() __atomic_fetch_add(iterations, 1, __ATOMIC_RELAXED)

/* What a call of a sink took. */
struct instant {
    uint64_t us, iterations;
};
struct instant now(void);
void note_sink(const char *name, struct instant begin);

/* jobs.c: what takes long. */
extern pthread_mutex_t disk_lock, catalog_lock, job_lock;
extern pthread_rwlock_t table_lock;
extern struct moment copying, scanning, localising, cleaning; /* what is to be hit is under way */
extern struct moment arriving, streaming;                     /* the sink begins */
void copy_file(void);
void write_header(void);
void scan_directory(void);
void wait_localised(void);
void *localiser(void *unused);
void list_entries(void);
void make_answer(void);
void answer_client(int socket);
void make_files(const char *prefix);
void clean_table(void);

/* events.c: one thread, first in, first out. */
struct event {
    void (*act)(void);
    struct event *next;
    bool done, last;
};
void enqueue_event(struct event *event);
void await_event(struct event *event);
void *event_thread(void *unused);

#endif
