/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/serve/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/serve/access.h"
#include "cli/serve/assets.h"
#include "cli/serve/events.h"
#include "cli/serve/jobs.h"
#include "cli/serve/page.h"
#include "cli/serve/route.h"
#include "cli/serve/stamps.h"

enum { CONNECTION_BYTES = 24 * 1024 };

struct server {
    const struct server_options *options;
    struct stamps *stamps;
    struct jobs *jobs;
    struct events *events;
    struct MHD_Daemon *daemon;
};

/* A request from its first line on. */
struct request {
    char *target; /* as it came; NULL: no memory */
    bool seen;    /* its headers have been */
    struct route route;
    struct job *job; /* that it waits for */
};

/* ------------------------------------------------------------------------------------------ responses */

#define POLICY \
    "default-src 'none'; connect-src 'self'; frame-src 'self'; img-src 'self'; form-action 'self'; base-uri " \
    "'none'; frame-ancestors 'self'; "

/* Reports and flame graphs have their styles in them; no page has a script in it. */
static const char *policy_of(const struct route *route)
{
    switch (route->type ? route->type->kind : ROUTE_NONE) {
    case ROUTE_RUN_REPORT:
    case ROUTE_COMPARE_REPORT:
        return POLICY "script-src 'none'; style-src 'unsafe-inline'";
    case ROUTE_RUN_FLAME:
    case ROUTE_COMPARE_FLAME:
        return POLICY "script-src 'self'; style-src 'unsafe-inline'";
    default:
        return POLICY "script-src 'self'; style-src 'self'";
    }
}

/* Sends the response and gives it back. */
static enum MHD_Result send_response(struct MHD_Connection *connection, const struct route *route,
                                     unsigned status, const char *content_type, struct MHD_Response *response)
{
    enum MHD_Result r;

    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", content_type);
    MHD_add_response_header(response, "Content-Security-Policy", policy_of(route));
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "X-Frame-Options", "SAMEORIGIN");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, "WWW-Authenticate", "Basic realm=\"tracectl\", charset=\"UTF-8\"");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
        MHD_add_response_header(response, "Retry-After", "5");
    if (route->type && !strcmp(route->type->content_type, "application/json"))
        MHD_add_response_header(response, "Tracectl-Schema", ASSETS_SCHEMA_VERSION);
    r = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return r;
}

/* An error that the server says by itself: as a page where a page was wanted. */
static enum MHD_Result refuse(struct MHD_Connection *connection, const struct route *route, unsigned status,
                              const char *reason)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    bool page = !route->type || route_is_page(route);

    if (!stream)
        return MHD_NO;
    if (page)
        page_error(stream, reason);
    else
        fprintf(stream, "{\"error\": \"%s\"}\n", reason);
    fclose(stream);
    return send_response(connection, route, status, page ? "text/html; charset=utf-8" : "application/json",
                         MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE));
}

static void release_answer(void *context)
{
    job_release(context);
}

/* The answer of a process. The response takes the request's reference. */
static enum MHD_Result send_job(struct MHD_Connection *connection, struct request *request)
{
    struct job *job = take_pointer(request->job);
    unsigned status = job_status(job);
    size_t size;
    const char *body = job_body(job, &size), *type = request->route.type->content_type;
    struct MHD_Response *response;

    if (status != MHD_HTTP_OK && !size) {
        const char *reason = job_reason(job);
        enum MHD_Result r =
            refuse(connection, &request->route, status, *reason ? reason : "The answer could not be made.");

        job_release(job);
        return r;
    }
    if (status != MHD_HTTP_OK && !route_is_page(&request->route))
        type = "application/json";
    response =
        MHD_create_response_from_buffer_with_free_callback_cls(size, (void *)body, release_answer, job);
    if (!response)
        job_release(job);
    return send_response(connection, &request->route, status, type, response);
}

/* ------------------------------------------------------------------------------------------ metrics */

/* What only the server knows, behind what the store says. */
static enum MHD_Result send_metrics(struct server *server, struct MHD_Connection *connection,
                                    struct request *request)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    struct jobs_counts counts = jobs_counts(server->jobs);
    char *text = NULL;
    size_t size = 0, body_size;
    const char *body = job_body(request->job, &body_size);
    FILE *stream;

    if (job_status(request->job) != MHD_HTTP_OK)
        return send_job(connection, request);
    stream = open_memstream(&text, &size);
    if (!stream)
        return MHD_NO;
    fwrite(body, 1, body_size, stream);
    metrics_put(stream, "tracectl_serve_connections", "gauge", "Open connections.",
                info ? info->num_connections : 0);
    metrics_put(stream, "tracectl_serve_answers_asked_total", "counter", "Answers from the store asked for.",
                counts.asked);
    metrics_put(stream, "tracectl_serve_answers_kept_total", "counter", "Of which were answered from memory.",
                counts.kept);
    metrics_put(stream, "tracectl_serve_answers_made_total", "counter", "Processes that made an answer.",
                counts.run);
    metrics_put(stream, "tracectl_serve_answers_failed_total", "counter", "Answers that could not be made.",
                counts.failed);
    metrics_put(stream, "tracectl_serve_answers_killed_total", "counter",
                "Processes killed: too slow, too large, or nobody waited.", counts.killed);
    fclose(stream);
    job_release(take_pointer(request->job));
    return send_response(connection, &request->route, MHD_HTTP_OK, request->route.type->content_type,
                         MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE));
}

/* ------------------------------------------------------------------------------------------ requests */

static enum MHD_Result redirect(struct MHD_Connection *connection, const struct route *route)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
    char target[64];

    snprintf(target, sizeof(target), "/compare/%lld/%lld", (long long)route->runs[0],
             (long long)route->runs[1]);
    if (response)
        MHD_add_response_header(response, "Location", target);
    return send_response(connection, route, MHD_HTTP_SEE_OTHER, route->type->content_type, response);
}

static enum MHD_Result send_events(struct server *server, struct MHD_Connection *connection,
                                   const struct route *route)
{
    struct MHD_Response *response = events_response(server->events, connection);

    if (!response)
        return refuse(connection, route, MHD_HTTP_SERVICE_UNAVAILABLE, "Too many pages wait for events.");
    return send_response(connection, route, MHD_HTTP_OK, route->type->content_type, response);
}

/* The answer to a request that may be made and that is understood. */
static enum MHD_Result answer(struct server *server, struct MHD_Connection *connection,
                              struct request *request)
{
    const struct route *route = &request->route;
    const struct asset *asset = asset_of(route->type->kind);

    if (asset)
        return send_response(
            connection, route, MHD_HTTP_OK, route->type->content_type,
            MHD_create_response_from_buffer(asset->size, (void *)asset->text, MHD_RESPMEM_PERSISTENT));
    if (route->type->kind == ROUTE_CHOSEN)
        return redirect(connection, route);
    if (route->type->kind == ROUTE_EVENTS)
        return send_events(server, connection, route);
    if (!request->job) {
        request->job = jobs_ask(server->jobs, request->target,
                                stamps_runs(server->stamps, route->runs, route->run_count), connection);
        if (!request->job)
            return MHD_NO;
    }
    if (!job_status(request->job))
        return MHD_YES; /* suspended; called again with the answer */
    if (route->type->kind == ROUTE_METRICS)
        return send_metrics(server, connection, request);
    return send_job(connection, request);
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* What a page of another site makes a browser ask for without the user's doing: only a look at a page that
 * costs little. */
static bool comes_from_elsewhere(struct MHD_Connection *connection)
{
    const char *site = header(connection, "Sec-Fetch-Site"), *mode = header(connection, "Sec-Fetch-Mode");

    return site && (!strcmp(site, "cross-site") || !strcmp(site, "same-site")) &&
           (!mode || strcmp(mode, "navigate") != 0);
}

/* 0: the request may be answered; else the status it is refused with. */
static unsigned check(struct server *server, struct MHD_Connection *connection, const char *method,
                      struct request *request, const char **ret_why)
{
    const char *host = header(connection, "Host");
    int r;

    *ret_why = "This host name is not served here (--host allows one).";
    if (!host || !route_host_is_allowed(host, server->options->host))
        return host ? MHD_HTTP_MISDIRECTED_REQUEST : MHD_HTTP_BAD_REQUEST;
    *ret_why = "A token is asked for.";
    if (server->options->token && !access_is_granted(connection, server->options->token))
        return MHD_HTTP_UNAUTHORIZED;
    *ret_why = "Nothing can be changed here: GET and HEAD only.";
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return MHD_HTTP_METHOD_NOT_ALLOWED;
    *ret_why = "Requests of other sites are not answered.";
    if (comes_from_elsewhere(connection))
        return MHD_HTTP_FORBIDDEN;
    r = route_parse(request->target, &request->route, ret_why);
    if (r == -ENOENT)
        *ret_why = "There is no such page.";
    return !r             ? 0
           : r == -ENOENT ? MHD_HTTP_NOT_FOUND
           : r == -EINVAL ? MHD_HTTP_BAD_REQUEST
                          : MHD_HTTP_INTERNAL_SERVER_ERROR;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **request_context)
{
    struct server *server = context;
    struct request *request = *request_context;

    if (!request || !request->target)
        return MHD_NO;
    if (!request->seen) {
        const char *why = NULL;
        unsigned status = check(server, connection, method, request, &why);

        request->seen = true;
        if (status)
            return refuse(connection, &request->route, status, why ? why : "The request failed.");
        return MHD_YES;
    }
    if (*upload_size) { /* a body that nobody asked for */
        *upload_size = 0;
        return MHD_YES;
    }
    return answer(server, connection, request);
}

static void *begin_request(void *context, const char *target, struct MHD_Connection *connection)
{
    struct request *request = calloc(1, sizeof(*request));

    if (request)
        request->target = strdup(target);
    return request;
}

static void end_request(void *context, struct MHD_Connection *connection, void **request_context,
                        enum MHD_RequestTerminationCode code)
{
    struct request *request = *request_context;

    if (!request)
        return;
    if (request->job)
        job_release(request->job);
    route_release(&request->route);
    free(request->target);
    free(request);
    *request_context = NULL;
}

/* ------------------------------------------------------------------------------------------ begin and end */

/* As many descriptors as the system allows: each connection is one. */
static void raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int start(struct server *server, struct error *err)
{
    raise_descriptors();
    server->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle,
        server, MHD_OPTION_LISTEN_SOCKET, server->options->listener, MHD_OPTION_URI_LOG_CALLBACK,
        begin_request, server, MHD_OPTION_NOTIFY_COMPLETED, end_request, server, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)SERVER_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SERVER_IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_END);
    if (!server->daemon)
        return error_say(err, -EIO, "cannot start the server: %s", strerror(errno));
    return 0;
}

int server_new(const struct server_options *options, struct server **ret_server, struct error *err)
{
    struct server *server = calloc(1, sizeof(*server));
    int r;

    if (!server) {
        close(options->listener);
        return error_no_memory(err);
    }
    server->options = options;
    r = stamps_new(options->store, &server->stamps, err);
    if (r >= 0)
        r = jobs_new(options->store, &server->jobs, err);
    if (r >= 0)
        r = events_new(server->stamps, &server->events, err);
    if (r >= 0)
        r = start(server, err);
    if (r < 0) {
        close(options->listener);
        server_free(server);
        return r;
    }
    *ret_server = server;
    return 0;
}

/* Suspended connections are resumed before the daemon ends, which waits for them. */
void server_free(struct server *server)
{
    if (!server)
        return;
    if (server->jobs)
        jobs_stop(server->jobs);
    if (server->events)
        events_stop(server->events);
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    events_free(server->events);
    jobs_free(server->jobs);
    stamps_free(server->stamps);
    free(server);
}
