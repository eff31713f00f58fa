/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stddef.h>

#include "service.h"

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER, event_done = PTHREAD_COND_INITIALIZER;
static struct event *first, *last;

void enqueue_event(struct event *event)
{
    pthread_mutex_lock(&queue_lock);
    if (first)
        last->next = event;
    else
        first = event;
    last = event;
    pthread_cond_signal(&queue_filled);
    pthread_mutex_unlock(&queue_lock);
}

void await_event(struct event *event)
{
    pthread_mutex_lock(&queue_lock);
    while (!event->done)
        pthread_cond_wait(&event_done, &queue_lock);
    pthread_mutex_unlock(&queue_lock);
}

static struct event *dequeue_event(void)
{
    struct event *event;

    pthread_mutex_lock(&queue_lock);
    while (!first)
        pthread_cond_wait(&queue_filled, &queue_lock);
    event = first;
    first = event->next;
    pthread_mutex_unlock(&queue_lock);
    return event;
}

static void handle_event(struct event *event)
{
    if (event->act)
        event->act();
    pthread_mutex_lock(&queue_lock);
    event->done = true;
    pthread_cond_broadcast(&event_done);
    pthread_mutex_unlock(&queue_lock);
}

void *event_thread(void *unused)
{
    bool is_last = false;

    while (!is_last) {
        struct event *event = dequeue_event();

        is_last = event->last;
        handle_event(event);
    }
    return unused;
}
