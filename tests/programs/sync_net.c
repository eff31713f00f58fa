/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: sync_net serve|ask ADDRESS PORT
 *
 * Two programs that talk: three datagrams of 20, 21 and 22 bytes, each answered with ten bytes more, over
 * sockets that are not connected, with sendto and recvmsg; then ten bytes over TCP, which the server takes
 * together with the end of the stream.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DATAGRAMS = 3, FIRST = 20, ANSWERED = 10, BYTES = 10 };

static struct sockaddr_in address;

static void check(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}

static void serve(void)
{
    static const struct sockaddr_in anywhere = {.sin_family = AF_INET};
    int datagrams = socket(AF_INET, SOCK_DGRAM, 0), listener = socket(AF_INET, SOCK_STREAM, 0), connection,
        yes = 1;
    struct sockaddr_in own = anywhere, client;
    socklen_t length = sizeof(client);
    struct pollfd ended = {.events = POLLRDHUP};
    char bytes[100];

    own.sin_port = address.sin_port;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    check(!bind(datagrams, (struct sockaddr *)&own, sizeof(own)), "bind datagrams");
    check(!bind(listener, (struct sockaddr *)&own, sizeof(own)) && !listen(listener, 1), "listen");
    connection = accept(listener, NULL, NULL);
    for (int i = 0; i < DATAGRAMS; i++) {
        ssize_t size = recvfrom(datagrams, bytes, sizeof(bytes), 0, (struct sockaddr *)&client, &length);

        check(size > 0 && sendto(datagrams, bytes, (size_t)size + ANSWERED, 0, (struct sockaddr *)&client,
                                 length) > 0,
              "answer");
    }
    ended.fd = connection;
    check(poll(&ended, 1, -1) == 1, "poll");
    check(recv(connection, bytes, sizeof(bytes), MSG_WAITALL) == BYTES, "recv");
}

static int connect_when_there(void)
{
    for (;;) {
        int connection = socket(AF_INET, SOCK_STREAM, 0);

        if (!connect(connection, (struct sockaddr *)&address, sizeof(address)))
            return connection;
        close(connection);
        usleep(10000);
    }
}

static void ask(void)
{
    int connection = connect_when_there(), datagrams = socket(AF_INET, SOCK_DGRAM, 0);
    char bytes[100] = "";

    for (size_t i = 0; i < DATAGRAMS; i++) {
        struct sockaddr_in server;
        struct iovec part = {bytes, sizeof(bytes)};
        struct msghdr message = {
            .msg_name = &server, .msg_namelen = sizeof(server), .msg_iov = &part, .msg_iovlen = 1};

        check(sendto(datagrams, bytes, FIRST + i, 0, (struct sockaddr *)&address, sizeof(address)) > 0,
              "sendto");
        check(recvmsg(datagrams, &message, 0) == (ssize_t)(FIRST + i + ANSWERED), "recvmsg");
    }
    check(send(connection, bytes, BYTES, 0) == BYTES, "send");
    close(connection);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: sync_net serve|ask ADDRESS PORT\n", stderr);
        return 2;
    }
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)atoi(argv[3]));
    check(inet_pton(AF_INET, argv[2], &address.sin_addr) == 1, "address");
    if (!strcmp(argv[1], "serve"))
        serve();
    else
        ask();
    return 0;
}
