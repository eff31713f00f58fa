/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The server: who may ask, what is answered from memory, and what a process is asked for (jobs.h). */
#ifndef TRACECTL_CLI_SERVE_SERVER_H
#define TRACECTL_CLI_SERVE_SERVER_H

struct error;
struct server;

enum {
    SERVER_CONNECTIONS_MAX = 4096,
    SERVER_IDLE_SECONDS = 30, /* a connection on which nothing moves is closed then */
};

struct server_options {
    const char *store;
    const char *host;  /* a name in Host headers that is allowed beside addresses and localhost; NULL: none */
    const char *token; /* that is asked for; NULL: none */
    int listener;      /* a listening socket, which belongs to the server from now on, after a failure too */
};

/* `options` and what it points to live as long as the server. Free with server_free. */
int server_new(const struct server_options *options, struct server **ret_server, struct error *err);
void server_free(struct server *server);

#endif
