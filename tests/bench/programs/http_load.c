/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: http_load PORT CONNECTIONS SECONDS PATH BODY [PATH BODY]...
 *
 * Keeps CONNECTIONS connections to 127.0.0.1 busy: each posts the bodies in turn, the next one when the last
 * is answered. Prints the requests of each second as it ends ("second 1234"), then "p99 MICROSECONDS".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256
#define LATENCY_MAX 1000000u /* microseconds: longer ones count as this */
#define SECOND 1000000000ull

struct connection {
    int fd;
    size_t next; /* which request is its next */
    uint64_t sent_ns;
    size_t length;
    char answer[8192];
};

static struct connection connections[CONNECTIONS_MAX];
static uint32_t latencies[LATENCY_MAX + 1];
static char **requests;
static size_t request_count;

static void fail(const char *what)
{
    fprintf(stderr, "http_load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static void make_requests(char **arguments, size_t count)
{
    requests = calloc(count / 2 + 1, sizeof(*requests));
    if (!requests)
        fail("memory");
    for (size_t i = 0; i + 1 < count; i += 2)
        if (asprintf(&requests[request_count++],
                     "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n%s",
                     arguments[i], strlen(arguments[i + 1]), arguments[i + 1]) < 0)
            fail("memory");
}

static void send_next(struct connection *connection)
{
    const char *request = requests[connection->next++ % request_count];

    connection->length = 0;
    connection->sent_ns = now_ns();
    if (send(connection->fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        fail("send");
}

static void begin(struct connection *connection, size_t number, int port, int epoll)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connection->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connection->fd < 0 || connect(connection->fd, (struct sockaddr *)&address, sizeof(address)) ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, connection->fd, &event))
        fail("connect");
    connection->next = number;
    send_next(connection);
}

/* Whether the answer is all there. */
static bool is_whole(const struct connection *connection)
{
    const char *body = strstr(connection->answer, "\r\n\r\n"), *length;

    if (!body)
        return false;
    if (strncmp(connection->answer, "HTTP/1.1 200", 12)) {
        fprintf(stderr, "http_load: %.200s\n", connection->answer);
        exit(1);
    }
    length = strcasestr(connection->answer, "\r\ncontent-length:");
    if (!length || length > body)
        return connection->length >= 5 &&
               !strcmp(connection->answer + connection->length - 5, "0\r\n\r\n"); /* in chunks */
    return connection->length >= (size_t)(body + 4 - connection->answer) + strtoul(length + 17, NULL, 10);
}

/* Returns whether a request has been answered. */
static bool take(struct connection *connection)
{
    ssize_t got = recv(connection->fd, connection->answer + connection->length,
                       sizeof(connection->answer) - 1 - connection->length, 0);
    uint64_t microseconds;

    if (got <= 0)
        fail("receive");
    connection->length += (size_t)got;
    connection->answer[connection->length] = '\0';
    if (!is_whole(connection))
        return false;
    microseconds = (now_ns() - connection->sent_ns) / 1000;
    latencies[microseconds < LATENCY_MAX ? microseconds : LATENCY_MAX]++;
    send_next(connection);
    return true;
}

static void run(int epoll, unsigned long seconds)
{
    uint64_t begun = now_ns();

    for (unsigned long second = 1; second <= seconds; second++) {
        uint64_t end = begun + second * SECOND;
        unsigned long answered = 0;

        while (now_ns() < end) {
            struct epoll_event events[64];
            int count = epoll_wait(epoll, events, 64, 10);

            for (int i = 0; i < count; i++)
                answered += take(events[i].data.ptr);
        }
        printf("second %lu\n", answered);
        fflush(stdout);
    }
}

static unsigned p99(void)
{
    uint64_t total = 0, sum = 0;
    unsigned i = 0;

    for (unsigned k = 0; k <= LATENCY_MAX; k++)
        total += latencies[k];
    for (; i < LATENCY_MAX && sum + latencies[i] < total - total / 100; i++)
        sum += latencies[i];
    return i;
}

int main(int argc, char **argv)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    size_t count;

    if (argc < 6 || epoll < 0) {
        fprintf(stderr, "usage: http_load PORT CONNECTIONS SECONDS PATH BODY [PATH BODY]...\n");
        return 2;
    }
    count = strtoul(argv[2], NULL, 10);
    make_requests(argv + 4, (size_t)argc - 4);
    for (size_t i = 0; i < count && i < CONNECTIONS_MAX; i++)
        begin(&connections[i], i, atoi(argv[1]), epoll);
    run(epoll, strtoul(argv[3], NULL, 10));
    printf("p99 %u\n", p99());
    return 0;
}
