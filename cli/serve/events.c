/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/serve/events.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "cli/serve/stamps.h"

enum { SIGN_OF_LIFE_SECONDS = 10, BLOCK_BYTES = 256 };

struct client {
    struct events *events;
    struct MHD_Connection *connection;
    struct client *next;
    uint64_t seen;
    bool suspended, wants_sign;
};

struct events {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool has_thread, stopping;
    struct stamps *stamps;
    struct client *clients;
    unsigned count;
    uint64_t stamp, number; /* of the last event */
};

/* ------------------------------------------------------------------------------------------ the thread */

/* With the lock held. */
static void resume(struct events *events)
{
    for (struct client *client = events->clients; client; client = client->next) {
        if (!client->suspended || !(client->seen != events->number || client->wants_sign || events->stopping))
            continue;
        client->suspended = false;
        MHD_resume_connection(client->connection);
    }
}

static void *watch(void *context)
{
    struct events *events = context;

    pthread_mutex_lock(&events->lock);
    for (unsigned seconds = 1; !events->stopping; seconds++) {
        struct timespec until;
        uint64_t stamp;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&events->wake, &events->lock, &until);
        if (!events->clients)
            continue; /* nobody to ask for */
        stamp = stamps_store(events->stamps);
        events->number += stamp != events->stamp;
        events->stamp = stamp;
        for (struct client *client = events->clients; client; client = client->next)
            client->wants_sign |= seconds % SIGN_OF_LIFE_SECONDS == 0;
        resume(events);
    }
    pthread_mutex_unlock(&events->lock);
    return NULL;
}

int events_new(struct stamps *stamps, struct events **ret_events, struct error *err)
{
    struct events *events = calloc(1, sizeof(*events));
    int r;

    if (!events)
        return error_no_memory(err);
    events->stamps = stamps;
    events->stamp = stamps_store(stamps);
    pthread_mutex_init(&events->lock, NULL);
    pthread_cond_init(&events->wake, NULL);
    r = pthread_create(&events->thread, NULL, watch, events);
    if (r) {
        events_free(events);
        return error_say(err, -r, "cannot create a thread: %s", strerror(r));
    }
    events->has_thread = true;
    *ret_events = events;
    return 0;
}

void events_stop(struct events *events)
{
    pthread_mutex_lock(&events->lock);
    events->stopping = true;
    pthread_cond_signal(&events->wake);
    resume(events);
    pthread_mutex_unlock(&events->lock);
    if (events->has_thread)
        pthread_join(events->thread, NULL);
    events->has_thread = false;
}

void events_free(struct events *events)
{
    if (!events)
        return;
    events_stop(events);
    pthread_mutex_destroy(&events->lock);
    pthread_cond_destroy(&events->wake);
    free(events);
}

/* ------------------------------------------------------------------------------------------ a stream */

static ssize_t read_event(void *context, uint64_t position, char *text, size_t size)
{
    struct client *client = context;
    struct events *events = client->events;
    int length = 0;

    pthread_mutex_lock(&events->lock);
    if (events->stopping) {
        length = -1;
    } else if (!position || client->seen != events->number) {
        client->seen = events->number;
        length = snprintf(text, size, "event: store\ndata: %llu\n\n", (unsigned long long)events->number);
    } else if (client->wants_sign) {
        client->wants_sign = false;
        length = snprintf(text, size, ":\n\n");
    } else {
        client->suspended = true;
        MHD_suspend_connection(client->connection);
    }
    pthread_mutex_unlock(&events->lock);
    return length < 0 ? (ssize_t)MHD_CONTENT_READER_END_OF_STREAM : length;
}

static void forget(void *context)
{
    struct client *client = context, **place;
    struct events *events = client->events;

    pthread_mutex_lock(&events->lock);
    for (place = &events->clients; *place != client; place = &(*place)->next)
        ;
    *place = client->next;
    events->count--;
    pthread_mutex_unlock(&events->lock);
    free(client);
}

struct MHD_Response *events_response(struct events *events, struct MHD_Connection *connection)
{
    struct client *client = calloc(1, sizeof(*client));
    struct MHD_Response *response;

    if (!client)
        return NULL;
    pthread_mutex_lock(&events->lock);
    if (events->stopping || events->count >= EVENTS_CLIENTS_MAX) {
        pthread_mutex_unlock(&events->lock);
        free(client);
        return NULL;
    }
    *client = (struct client){
        .events = events, .connection = connection, .next = events->clients, .seen = events->number};
    events->clients = client;
    events->count++;
    pthread_mutex_unlock(&events->lock);
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_event, client, forget);
    if (!response)
        forget(client);
    return response;
}
