/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "service.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *folder;
unsigned size;
bool hit;
uint64_t *iterations;
static const char *plan;

bool plans(const char *word)
{
    size_t length = strlen(word);

    for (const char *at = plan; (at = strstr(at, word)); at += length)
        if ((at == plan || at[-1] == ',') && (!at[length] || at[length] == ','))
            return true;
    return false;
}

/* ------------------------------------------------------------------------------------------ sockets */

int listen_anywhere(uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) || listen(listener, 16) ||
        getsockname(listener, (struct sockaddr *)&address, &length)) {
        perror("listen");
        exit(1);
    }
    *ret_port = ntohs(address.sin_port);
    return listener;
}

int connect_to(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int connection = socket(AF_INET, SOCK_STREAM, 0);

    if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof(address))) {
        perror("connect");
        exit(1);
    }
    return connection;
}

void tell(int socket, char letter)
{
    if (send(socket, &letter, 1, MSG_NOSIGNAL) != 1)
        exit(1);
}

char hear(int socket)
{
    char letter;

    return recv(socket, &letter, 1, 0) == 1 ? letter : 0;
}

/* ------------------------------------------------------------------------------------------ time */

void moment_comes(struct moment *moment)
{
    if (!hit)
        return;
    pthread_mutex_lock(&moment->mutex);
    moment->is_here = true;
    pthread_cond_broadcast(&moment->come);
    pthread_mutex_unlock(&moment->mutex);
}

void moment_await(struct moment *moment)
{
    if (!hit)
        return;
    pthread_mutex_lock(&moment->mutex);
    while (!moment->is_here)
        pthread_cond_wait(&moment->come, &moment->mutex);
    pthread_mutex_unlock(&moment->mutex);
}

struct instant now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (struct instant){(uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000,
                            __atomic_load_n(iterations, __ATOMIC_RELAXED)};
}

void note_sink(const char *name, struct instant begin)
{
    struct instant end = now();

    printf("sink %s %lu %lu\n", name, (unsigned long)(end.us - begin.us),
           (unsigned long)(end.iterations - begin.iterations));
    fflush(stdout);
}

/* ------------------------------------------------------------------------------------------ processes */

void be_client(uint16_t node, const char *requests)
{
    for (; *requests; requests++) {
        int connection = connect_to(node);

        tell(connection, *requests);
        hear(connection);
        close(connection);
    }
}

static void stream_file(int connection)
{
    tell(connection, 's');
    hear(connection);
}

void be_peer(uint16_t node)
{
    int connection = connect_to(node);
    struct instant begin;

    tell(connection, 'h'); /* until the node is there and, to hit, handles the event before */
    hear(connection);
    begin = now();
    stream_file(connection);
    note_sink("stream_file", begin);
    close(connection);
}

static void receive_heartbeats(int listener)
{
    int connection = accept(listener, NULL, NULL);

    while (hear(connection))
        ;
    close(connection);
}

int main(int argc, char **argv)
{
    uint16_t master, node;
    int master_listener, node_listener;

    if (argc < 4) {
        fputs("usage: cascade_service FOLDER SIZE PLAN [hit]\n", stderr);
        return 2;
    }
    folder = argv[1];
    size = (unsigned)atoi(argv[2]);
    plan = argv[3];
    hit = argc > 4;
    iterations = mmap(NULL, sizeof(*iterations), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (iterations == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    master_listener = listen_anywhere(&master);
    node_listener = listen_anywhere(&node);
    if (fork() == 0) {
        be_node(node_listener, master);
        return 0;
    }
    if (fork() == 0) {
        be_client(node, "crl");
        return 0;
    }
    if (fork() == 0) {
        be_client(node, "twa");
        return 0;
    }
    if (fork() == 0) {
        be_peer(node);
        return 0;
    }
    receive_heartbeats(master_listener);
    while (wait(NULL) > 0)
        ;
    return 0;
}
