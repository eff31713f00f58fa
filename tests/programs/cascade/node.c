/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "service.h"

enum { HEARTBEATS = 3, CONNECTIONS = 7 };

static pthread_mutex_t status_lock = PTHREAD_MUTEX_INITIALIZER, lease_lock = PTHREAD_MUTEX_INITIALIZER,
                       boot_lock = PTHREAD_MUTEX_INITIALIZER;
static struct moment collecting = MOMENT, renewing = MOMENT, writing = MOMENT;

/* ------------------------------------------------------------------------------------------ upkeep */

/* Of copy2 and copy3: has one lock and needs the next one. */
static void collect_status(void)
{
    pthread_mutex_lock(&status_lock);
    moment_comes(&collecting);
    pthread_mutex_lock(&disk_lock);
    pthread_mutex_unlock(&disk_lock);
    pthread_mutex_unlock(&status_lock);
}

static void *collector(void *unused)
{
    moment_await(&copying);
    collect_status();
    return unused;
}

static void renew_lease(void)
{
    pthread_mutex_lock(&lease_lock);
    moment_comes(&renewing);
    pthread_mutex_lock(&status_lock);
    pthread_mutex_unlock(&status_lock);
    pthread_mutex_unlock(&lease_lock);
}

static void *lessee(void *unused)
{
    moment_await(&collecting);
    renew_lease();
    return unused;
}

static void *scanner(void *unused)
{
    moment_await(&writing);
    scan_directory();
    return unused;
}

static void *lister(void *unused)
{
    list_entries();
    return unused;
}

static void *header_writer(void *unused)
{
    write_header();
    return unused;
}

/* Decoy boot: in an order that could be the second half of a chain, but before there is a first one. */
static void check_disk(void)
{
    pthread_mutex_lock(&boot_lock);
    pthread_mutex_lock(&disk_lock);
    pthread_mutex_unlock(&disk_lock);
    pthread_mutex_unlock(&boot_lock);
}

/* ------------------------------------------------------------------------------------------ heartbeats */

static void touch(pthread_mutex_t *lock, bool planned)
{
    if (!planned)
        return;
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
}

static void send_heartbeat(int master)
{
    touch(&boot_lock, plans("boot"));
    touch(&disk_lock, plans("copy1") || plans("constant"));
    touch(&status_lock, plans("copy2"));
    touch(&lease_lock, plans("copy3"));
    if (plans("readers")) {
        pthread_rwlock_rdlock(&table_lock);
        pthread_rwlock_unlock(&table_lock);
    }
    tell(master, 'h');
}

static void *heart(void *master)
{
    int connection = connect_to(*(const uint16_t *)master);

    if (plans("copy1"))
        moment_await(&copying);
    if (plans("copy2"))
        moment_await(&collecting);
    if (plans("copy3"))
        moment_await(&renewing);
    for (int i = 0; i < HEARTBEATS; i++) {
        struct instant begin = now();

        if (!plans("scan") && !plans("localise"))
            moment_comes(&arriving);
        send_heartbeat(connection);
        note_sink("send_heartbeat", begin);
        usleep(2000);
    }
    close(connection);
    return NULL;
}

/* ------------------------------------------------------------------------------------------ requests */

static void write_block(void)
{
    pthread_mutex_lock(&catalog_lock);
    pthread_mutex_unlock(&catalog_lock);
}

static void run_task(void)
{
    pthread_mutex_lock(&job_lock);
    pthread_mutex_unlock(&job_lock);
}

static void have_done(void (*act)(void))
{
    struct event event = {.act = act};

    enqueue_event(&event);
    await_event(&event);
}

static void remove_table(void)
{
    have_done(clean_table);
}

/* Long enough for whoever has it done to begin waiting. */
static void find_stream(void)
{
    usleep(1000);
}

static void open_stream(void)
{
    have_done(find_stream);
}

static void serve_stream(int connection, char request)
{
    if (request == 'h') {
        if (plans("cleanup"))
            moment_await(&cleaning);
        tell(connection, 'h');
        request = hear(connection);
    }
    moment_comes(&streaming);
    if (plans("cleanup"))
        open_stream();
    tell(connection, request);
}

static void serve_request(int connection, char request)
{
    struct instant begin;

    if (request == 'c' && (plans("copy1") || plans("copy2") || plans("copy3") || plans("boot")))
        copy_file();
    if (request == 'r' && plans("cleanup"))
        remove_table();
    if (request == 'l' && plans("localise"))
        wait_localised();
    if (request == 't' && plans("localise"))
        moment_await(&localising);
    if (request == 'w' && plans("scan")) {
        moment_comes(&writing);
        moment_await(&scanning);
    }
    begin = now();
    if ((request == 't' && plans("localise")) || (request == 'w' && plans("scan")))
        moment_comes(&arriving);
    if (request == 't' && plans("localise")) {
        run_task();
        note_sink("run_task", begin);
    }
    if (request == 'w' && plans("scan")) {
        write_block();
        note_sink("write_block", begin);
    }
    if (request == 'a' && plans("answer")) {
        make_answer();
        answer_client(connection);
        return;
    }
    tell(connection, request);
}

static void *serve_connection(void *connection)
{
    int socket = *(int *)connection;
    char request = hear(socket);

    free(connection);
    if (request == 's' || request == 'h')
        serve_stream(socket, request);
    else
        serve_request(socket, request);
    close(socket);
    return NULL;
}

/* ------------------------------------------------------------------------------------------ the node */

static void serve(int listener, pthread_t *threads)
{
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        int *connection = malloc(sizeof(*connection));

        *connection = accept(listener, NULL, NULL);
        pthread_create(&threads[i], NULL, serve_connection, connection);
    }
}

static unsigned start_upkeep(pthread_t *threads)
{
    unsigned count = 0;

    if (plans("copy2") || plans("copy3"))
        pthread_create(&threads[count++], NULL, collector, NULL);
    if (plans("copy3"))
        pthread_create(&threads[count++], NULL, lessee, NULL);
    if (plans("scan"))
        pthread_create(&threads[count++], NULL, scanner, NULL);
    if (plans("readers"))
        pthread_create(&threads[count++], NULL, lister, NULL);
    if (plans("constant"))
        pthread_create(&threads[count++], NULL, header_writer, NULL);
    if (plans("localise"))
        pthread_create(&threads[count++], NULL, localiser, NULL);
    return count;
}

void be_node(int listener, uint16_t master)
{
    pthread_t upkeep[8], connections[CONNECTIONS], events, heart_thread;
    struct event end = {.last = true};
    unsigned upkeep_count;

    if (plans("boot"))
        check_disk();
    if (plans("cleanup"))
        make_files("row");
    if (plans("scan"))
        make_files("block");
    pthread_create(&events, NULL, event_thread, NULL);
    upkeep_count = start_upkeep(upkeep);
    pthread_create(&heart_thread, NULL, heart, &master);
    serve(listener, connections);
    for (unsigned i = 0; i < CONNECTIONS; i++)
        pthread_join(connections[i], NULL);
    for (unsigned i = 0; i < upkeep_count; i++)
        pthread_join(upkeep[i], NULL);
    pthread_join(heart_thread, NULL);
    enqueue_event(&end);
    pthread_join(events, NULL);
}
