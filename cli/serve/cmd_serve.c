/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl serve: the store as pages, and as an API. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/serve/access.h"
#include "cli/serve/print.h"
#include "cli/serve/server.h"

enum { BACKLOG = 1024 };

struct serve_arguments {
    const char *listen, *host, *token_file, *print;
};

enum { KEY_LISTEN = 0x300, KEY_HOST, KEY_TOKEN_FILE, KEY_PRINT };

static const struct argp_option options[] = {
    {"listen", KEY_LISTEN, "ADDR:PORT", 0,
     "Address and port (default 127.0.0.1:7447; port 0: any that is free)", 0},
    {"host", KEY_HOST, "NAME", 0, "Also answer requests for this host name", 0},
    {"token-file", KEY_TOKEN_FILE, "FILE", 0,
     "Ask for the token in FILE (default: the one in $TRACECTL_TOKEN, if set)", 0},
    {"print", KEY_PRINT, "TARGET", 0, "Print the answer to TARGET, such as /runs/1, and exit", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct serve_arguments *arguments = state->input;

    switch (key) {
    case KEY_LISTEN:
        arguments->listen = arg;
        return 0;
    case KEY_HOST:
        arguments->host = arg;
        return 0;
    case KEY_TOKEN_FILE:
        arguments->token_file = arg;
        return 0;
    case KEY_PRINT:
        arguments->print = arg;
        return 0;
    case ARGP_KEY_ARG:
        argp_usage(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ------------------------------------------------------------------------------------------ the address */

/* "ADDR:PORT", "[ADDR]:PORT". */
static int resolve(const char *text, struct addrinfo **ret_address, struct error *err)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    const char *colon = strrchr(text, ':');
    AUTO_FREE char *host = colon ? strndup(text, (size_t)(colon - text)) : NULL;
    size_t length = host ? strlen(host) : 0;
    char *name = host;
    int r;

    if (!colon)
        return error_say(err, -EINVAL, "--listen: ADDR:PORT is wanted, not '%s'", text);
    if (!host)
        return error_no_memory(err);
    if (length > 1 && host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        name++;
    }
    r = getaddrinfo(*name ? name : NULL, colon + 1, &hints, ret_address);
    return r ? error_say(err, -EINVAL, "--listen %s: %s", text, gai_strerror(r)) : 0;
}

static bool is_loopback(const struct sockaddr *address)
{
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;

    return address->sa_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&six->sin6_addr)
                                          : ntohl(four->sin_addr.s_addr) >> 24 == 127;
}

static int listen_on(const struct addrinfo *address, const char *text, int *ret_socket, struct error *err)
{
    AUTO_CLOSE int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int yes = 1;

    if (fd < 0)
        return error_say(err, -errno, "--listen %s: %s", text, strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, address->ai_addr, address->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
        return error_say(err, -errno, "--listen %s: %s", text, strerror(errno));
    *ret_socket = take_fd(&fd);
    return 0;
}

static int open_listener(const char *text, bool has_token, int *ret_socket, struct error *err)
{
    struct addrinfo *address = NULL;
    int r = resolve(text, &address, err);

    if (r < 0 || !address)
        return r;
    if (!has_token && !is_loopback(address->ai_addr))
        r = error_say(
            err, -EPERM,
            "--listen %s: others can come there, so a token is needed (--token-file, or TRACECTL_TOKEN)",
            text);
    else
        r = listen_on(address, text, ret_socket, err);
    freeaddrinfo(address);
    return r;
}

/* Where it listens, once it does: the port may have been chosen just now. */
static void print_address(int listener)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    char host[INET6_ADDRSTRLEN + 16] = "", port[16] = "";
    bool six;

    getsockname(listener, (struct sockaddr *)&address, &size);
    getnameinfo((struct sockaddr *)&address, size, host, sizeof(host), port, sizeof(port),
                NI_NUMERICHOST | NI_NUMERICSERV);
    six = address.ss_family == AF_INET6;
    text_print(stdout, "listening on http://%s%s%s:%s\n", six ? "[" : "", host, six ? "]" : "", port);
    fflush(stdout);
}

/* ------------------------------------------------------------------------------------------ the command */

/* Blocked in all threads: the first one of them waits for one to come. */
static sigset_t block_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signals;
}

static int serve(const struct serve_arguments *arguments, struct error *err)
{
    AUTO_FREE char *token = NULL;
    struct server_options server_options = {.store = cli.store_path, .host = arguments->host};
    struct server *server = NULL;
    sigset_t signals;
    int r = access_read_token(arguments->token_file, &token, err), came;

    if (r >= 0)
        r = open_listener(arguments->listen, token != NULL, &server_options.listener, err);
    if (r < 0)
        return r;
    signals = block_signals();
    server_options.token = token;
    r = server_new(&server_options, &server, err);
    if (r < 0)
        return r;
    print_address(server_options.listener);
    sigwait(&signals, &came);
    server_free(server);
    return 0;
}

static int run(int argc, char **argv)
{
    struct serve_arguments arguments = {.listen = "127.0.0.1:7447"};
    struct error err = {0};

    cli_parse(&cmd_serve, argc, argv, &arguments);
    if (arguments.print)
        return serve_print(arguments.print);
    return serve(&arguments, &err) < 0 ? cli_fail(&err) : EXIT_NOTHING_FOUND;
}

static const struct argp_child children[] = {{&cli_common_argp, 0, NULL, 0}, {0}};

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc =
        "Serve the store as web pages: runs, comparisons, what is being recorded, and SQL; the same as JSON "
        "under /api/v1, and numbers for Prometheus under /metrics. Prints the address when it is ready, and "
        "serves until Ctrl-C.\vNothing can be changed through the pages, and they load nothing from elsewhere. "
        "Without a token only addresses of this machine (127.0.0.1, ::1) can be listened on. A token is sent as "
        "'Authorization: Bearer TOKEN', or as the password that a browser asks for (any name). There is no "
        "encryption: between machines use an SSH tunnel or a proxy with TLS.\n\n"
        "Answers are made by separate processes, two at a time, of 30 seconds at most.\n\n"
        "Exit status: 0 ended by a signal, 2 usage, 3 failure. With --print: 0 printed, 10 no such page or run, "
        "11 the request is wrong, 12 failure.",
    .children = children,
};

const struct command cmd_serve = {
    .name = "serve",
    .summary = "serve the store as web pages and as an API",
    .argp = &argp,
    .examples =
        "Serve a store on this machine:\n"
        "  tracectl -d runs.db serve\n"
        "Serve it to others, who need the token:\n"
        "  tracectl serve --listen 0.0.0.0:7447 --token-file /etc/tracectl/token\n",
    .run = run,
};
