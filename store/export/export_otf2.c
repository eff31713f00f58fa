/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Open Trace Format 2 (libotf2), a directory for Vampir, Scalasca, otf2-print and others. Processes are
 * location groups, threads locations, functions regions; a call is Enter and Leave, one that never returned
 * Enter alone, with the attribute "state". A loss is a parameter event with the number of events, and a
 * marker that says why. Other gaps are markers, and their number is a property of the archive, because many
 * tools do not read markers. Times are nanoseconds since 1970.
 */
#include <dirent.h>
#include <errno.h>
#include <otf2/otf2.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "store/bytes/id_map.h"
#include "store/export/export_run.h"
#include "store/export/export_text.h"

#define CHUNKS_MAX 2u

enum attribute { ATTRIBUTE_STATE, ATTRIBUTE_SITE, ATTRIBUTE_NESTING };
enum marker { MARKER_LOST, MARKER_BLIND };
enum parameter { PARAMETER_LOST };

struct otf2 {
    struct export_run run;
    OTF2_Archive *archive;
    OTF2_GlobalDefWriter *definitions;
    OTF2_EvtWriter *events; /* of the thread */
    OTF2_MarkerWriter *markers;
    OTF2_AttributeList *attributes;
    uint64_t *event_counts; /* by index of thread */
    uint64_t location;
    uint64_t last_ns;
    uint32_t string_count, site_count;
    uint32_t states[3];  /* strings of the states */
    uint32_t assumed;    /* string */
    struct id_map sites; /* the definition + 1 of each site */
    uint64_t gaps;
    bool bare;
};

/* ------------------------------------------------------------------------------------------ the archive */

/* OTF2 keeps what a location has written in chunks, and flushes when it gets no more of them. Left to itself
 * it takes 128 MiB before it does. */
struct chunks {
    size_t count;
    void *memory[CHUNKS_MAX];
};

static void *allocate_chunk(void *data, OTF2_FileType type, OTF2_LocationRef location, void **buffer,
                            uint64_t size)
{
    struct chunks *chunks = *buffer;

    if (!chunks)
        *buffer = chunks = calloc(1, sizeof(*chunks));
    if (!chunks || chunks->count == CHUNKS_MAX)
        return NULL;
    chunks->memory[chunks->count] = malloc(size);
    return chunks->memory[chunks->count] ? chunks->memory[chunks->count++] : NULL;
}

static void free_chunks(void *data, OTF2_FileType type, OTF2_LocationRef location, void **buffer, bool final)
{
    struct chunks *chunks = *buffer;

    while (chunks && chunks->count)
        free(chunks->memory[--chunks->count]);
    if (final) {
        free(chunks);
        *buffer = NULL;
    }
}

static OTF2_FlushType before_flush(void *data, OTF2_FileType type, OTF2_LocationRef location, void *caller,
                                   bool final)
{
    return OTF2_FLUSH;
}

static OTF2_ErrorCode stay_silent(void *data, const char *file, uint64_t line, const char *function,
                                  OTF2_ErrorCode code, const char *format, va_list arguments)
{
    return code;
}

static int fail(const struct otf2 *otf2, OTF2_ErrorCode code)
{
    return error_say(otf2->run.err, code == OTF2_ERROR_ENOSPC ? -ENOSPC : -EIO, "cannot write %s: %s",
                     otf2->run.options->directory, OTF2_Error_GetDescription(code));
}

/* Passes the first failure on: CHECK(r, otf2, call) only calls when r is 0. */
#define CHECK(r, otf2, call) \
    do { \
        if ((r) == 0) { \
            OTF2_ErrorCode code_ = (call); \
            if (code_ != OTF2_SUCCESS) \
                (r) = fail((otf2), code_); \
        } \
    } while (0)

/* The archive must not be mixed with what another one left. */
static int check_directory(const char *path, struct error *err)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    int r = 0;

    if (!directory)
        return errno == ENOENT ? 0 : error_set(err, -errno, NULL, "cannot create %s", path);
    while (r == 0 && (entry = readdir(directory)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = error_say(err, -EEXIST, "cannot create %s: it is not empty (name a new directory)", path);
    closedir(directory);
    return r;
}

static int open_archive(struct otf2 *otf2)
{
    static const OTF2_FlushCallbacks flush = {.otf2_pre_flush = before_flush};
    static const OTF2_MemoryCallbacks memory = {allocate_chunk, free_chunks};
    const char *path = otf2->run.options->directory;
    int r = check_directory(path, otf2->run.err);

    if (r < 0)
        return r;
    OTF2_Error_RegisterCallback(stay_silent, NULL);
    otf2->archive =
        OTF2_Archive_Open(path, "traces", OTF2_FILEMODE_WRITE, OTF2_CHUNK_SIZE_EVENTS_DEFAULT,
                          OTF2_CHUNK_SIZE_DEFINITIONS_DEFAULT, OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    if (!otf2->archive)
        return error_say(otf2->run.err, -EIO,
                         "cannot create %s (does its parent exist, and is it "
                         "writable?)",
                         path);
    CHECK(r, otf2, OTF2_Archive_SetFlushCallbacks(otf2->archive, &flush, NULL));
    CHECK(r, otf2, OTF2_Archive_SetMemoryCallbacks(otf2->archive, &memory, NULL));
    CHECK(r, otf2, OTF2_Archive_SetSerialCollectiveCallbacks(otf2->archive));
    CHECK(r, otf2, OTF2_Archive_SetCreator(otf2->archive, "tracectl " TRACECTL_VERSION));
    CHECK(r, otf2, OTF2_Archive_SetDescription(otf2->archive, export_times_text(&otf2->run)));
    CHECK(r, otf2, OTF2_Archive_OpenEvtFiles(otf2->archive));
    if (r < 0)
        return r;
    otf2->definitions = OTF2_Archive_GetGlobalDefWriter(otf2->archive);
    otf2->markers = OTF2_Archive_GetMarkerWriter(otf2->archive);
    otf2->attributes = OTF2_AttributeList_New();
    if (!otf2->definitions || !otf2->markers || !otf2->attributes)
        return fail(otf2, OTF2_ERROR_MEM_ALLOC_FAILED);
    return 0;
}

/* ------------------------------------------------------------------------------------------ definitions */

static int define_string(struct otf2 *otf2, const char *text, uint32_t *ret_string)
{
    AUTO_FREE char *valid = text_valid(text);
    int r = valid ? 0 : error_no_memory(otf2->run.err);

    CHECK(r, otf2, OTF2_GlobalDefWriter_WriteString(otf2->definitions, otf2->string_count, valid));
    if (r == 0)
        *ret_string = otf2->string_count++;
    return r;
}

static int define_attribute(struct otf2 *otf2, enum attribute attribute, const char *name, const char *text,
                            OTF2_Type type)
{
    uint32_t name_string, text_string;
    int r = define_string(otf2, name, &name_string);

    if (r == 0)
        r = define_string(otf2, text, &text_string);
    CHECK(r, otf2,
          OTF2_GlobalDefWriter_WriteAttribute(otf2->definitions, attribute, name_string, text_string, type));
    return r;
}

/* The regions are the functions by index. */
static int define_functions(struct otf2 *otf2)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i <= otf2->run.function_count; i++) {
        const struct export_function *function = &otf2->run.functions[i];
        uint32_t name, image, file = OTF2_UNDEFINED_STRING;
        const uint32_t line = function->line > 0 ? (uint32_t)function->line : 0;

        r = define_string(otf2, function->name, &name);
        if (r == 0)
            r = define_string(otf2, function->image, &image);
        if (r == 0 && *function->file)
            r = define_string(otf2, function->file, &file);
        CHECK(r, otf2,
              OTF2_GlobalDefWriter_WriteRegion(otf2->definitions, (OTF2_RegionRef)i, name, name, image,
                                               OTF2_REGION_ROLE_FUNCTION, OTF2_PARADIGM_UNKNOWN,
                                               OTF2_REGION_FLAG_NONE, file, line, line));
    }
    return r;
}

static int define_begin(struct otf2 *otf2)
{
    uint32_t empty, lost = 0;
    int r = define_string(otf2, "", &empty);

    for (int state = 0; r == 0 && state < 3; state++)
        r = define_string(otf2, export_state_name((enum export_state)state), &otf2->states[state]);
    if (r == 0)
        r = define_attribute(otf2, ATTRIBUTE_STATE, "state",
                             "of a call without a return: open (it never came back) or unknown",
                             OTF2_TYPE_STRING);
    if (r == 0)
        r = define_attribute(otf2, ATTRIBUTE_SITE, "site", "where the call came from",
                             OTF2_TYPE_SOURCE_CODE_LOCATION);
    if (r == 0)
        r = define_string(otf2, "assumed", &otf2->assumed);
    if (r == 0)
        r = define_attribute(otf2, ATTRIBUTE_NESTING, "nesting",
                             "assumed: the call around may have returned unseen", OTF2_TYPE_STRING);
    CHECK(r, otf2,
          OTF2_MarkerWriter_WriteDefMarker(otf2->markers, MARKER_LOST, "tracectl", "events lost",
                                           OTF2_SEVERITY_HIGH));
    CHECK(r, otf2,
          OTF2_MarkerWriter_WriteDefMarker(otf2->markers, MARKER_BLIND, "tracectl", "function not observed",
                                           OTF2_SEVERITY_MEDIUM));
    if (r == 0)
        r = define_string(otf2, "[lost]", &lost);
    CHECK(r, otf2,
          OTF2_GlobalDefWriter_WriteParameter(otf2->definitions, PARAMETER_LOST, lost,
                                              OTF2_PARAMETER_TYPE_UINT64));
    return r < 0 ? r : define_functions(otf2);
}

static int define_processes(struct otf2 *otf2)
{
    uint32_t host, class_name, title;
    int r = define_string(otf2, otf2->run.run->host, &host);

    if (r == 0)
        r = define_string(otf2, "machine", &class_name);
    CHECK(r, otf2,
          OTF2_GlobalDefWriter_WriteSystemTreeNode(otf2->definitions, 0, host, class_name,
                                                   OTF2_UNDEFINED_SYSTEM_TREE_NODE));
    for (size_t i = 0; r == 0 && i < otf2->run.process_count; i++) {
        r = define_string(otf2, otf2->run.processes[i].title, &title);
        CHECK(r, otf2,
              OTF2_GlobalDefWriter_WriteLocationGroup(otf2->definitions, (OTF2_LocationGroupRef)i, title,
                                                      OTF2_LOCATION_GROUP_TYPE_PROCESS, 0,
                                                      OTF2_UNDEFINED_LOCATION_GROUP));
    }
    return r;
}

static int define_threads(struct otf2 *otf2)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < otf2->run.thread_count; i++) {
        const struct tracestore_thread *thread = &otf2->run.threads[i];
        const uint64_t group = export_process_of(&otf2->run, thread)->number - 1;
        AUTO_FREE char *title = export_thread_title(thread);
        uint32_t name = 0;

        r = title ? define_string(otf2, title, &name) : error_no_memory(otf2->run.err);
        CHECK(r, otf2,
              OTF2_GlobalDefWriter_WriteLocation(otf2->definitions, i, name, OTF2_LOCATION_TYPE_CPU_THREAD,
                                                 otf2->event_counts[i], (OTF2_LocationGroupRef)group));
    }
    return r;
}

/* Every location has a file of definitions, if an empty one: readers open it. */
static int write_local_definitions(struct otf2 *otf2)
{
    int r = 0;

    CHECK(r, otf2, OTF2_Archive_CloseEvtFiles(otf2->archive));
    CHECK(r, otf2, OTF2_Archive_OpenDefFiles(otf2->archive));
    for (size_t i = 0; r == 0 && i < otf2->run.thread_count; i++) {
        OTF2_DefWriter *writer = OTF2_Archive_GetDefWriter(otf2->archive, i);

        if (!writer)
            return fail(otf2, OTF2_ERROR_MEM_ALLOC_FAILED);
        CHECK(r, otf2, OTF2_Archive_CloseDefWriter(otf2->archive, writer));
    }
    CHECK(r, otf2, OTF2_Archive_CloseDefFiles(otf2->archive));
    return r;
}

static int define_end(struct otf2 *otf2)
{
    const uint64_t origin = otf2->run.origin_ns;
    int r = write_local_definitions(otf2);
    char gaps[32];

    snprintf(gaps, sizeof(gaps), "%llu", (unsigned long long)otf2->gaps);
    CHECK(r, otf2, OTF2_Archive_SetProperty(otf2->archive, "TRACECTL::GAPS", gaps, true));

    CHECK(r, otf2,
          OTF2_GlobalDefWriter_WriteClockProperties(otf2->definitions, 1000000000u, origin,
                                                    otf2->last_ns > origin ? otf2->last_ns - origin : 0,
                                                    origin));
    if (r == 0)
        r = define_processes(otf2);
    return r < 0 ? r : define_threads(otf2);
}

/* ------------------------------------------------------------------------------------------ events */

static int otf2_thread(void *context, const struct tracestore_thread *thread)
{
    struct otf2 *otf2 = context;

    otf2->location = (uint64_t)(thread - otf2->run.threads);
    otf2->bare = thread->returns == TRACE_RETURNS_NONE;
    otf2->events = OTF2_Archive_GetEvtWriter(otf2->archive, otf2->location);
    return otf2->events ? 0 : fail(otf2, OTF2_ERROR_MEM_ALLOC_FAILED);
}

static int find_site(struct otf2 *otf2, const struct export_site *site, uint32_t *ret_definition)
{
    int64_t known = id_map_number(&otf2->sites, site->site_id);
    uint32_t file = 0;
    int r;

    if (!known) {
        r = define_string(otf2, site->file, &file);
        CHECK(r, otf2,
              OTF2_GlobalDefWriter_WriteSourceCodeLocation(otf2->definitions, otf2->site_count, file,
                                                           (uint32_t)site->line));
        if (r < 0)
            return r;
        known = ++otf2->site_count;
        if (id_map_set(&otf2->sites, site->site_id, known))
            return error_no_memory(otf2->run.err);
    }
    *ret_definition = (uint32_t)(known - 1);
    return 0;
}

static int put_call(struct otf2 *otf2, const struct export_event *event)
{
    const OTF2_RegionRef region = (OTF2_RegionRef)event->function;
    uint32_t site = 0;
    int r = 0;

    if (event->state != EXPORT_RETURNED)
        CHECK(r, otf2,
              OTF2_AttributeList_AddStringRef(otf2->attributes, ATTRIBUTE_STATE, otf2->states[event->state]));
    if (event->event.assumed)
        CHECK(r, otf2, OTF2_AttributeList_AddStringRef(otf2->attributes, ATTRIBUTE_NESTING, otf2->assumed));
    if (r == 0 && event->site && *event->site->file) {
        r = find_site(otf2, event->site, &site);
        CHECK(r, otf2, OTF2_AttributeList_AddSourceCodeLocationRef(otf2->attributes, ATTRIBUTE_SITE, site));
    }
    /* An Enter empties the list. */
    CHECK(r, otf2, OTF2_EvtWriter_Enter(otf2->events, otf2->attributes, event->at_ns, region));
    otf2->event_counts[otf2->location]++;
    if (!otf2->bare)
        return r;
    CHECK(r, otf2, OTF2_EvtWriter_Leave(otf2->events, NULL, event->at_ns, region));
    otf2->event_counts[otf2->location]++;
    return r;
}

static int put_lost(struct otf2 *otf2, uint64_t at_ns, OTF2_MarkerScope scope, uint64_t location,
                    uint64_t count, const char *cause)
{
    char text[300];
    int r = 0;

    if (count)
        snprintf(text, sizeof(text), "%llu events: %s", (unsigned long long)count, cause);
    else
        snprintf(text, sizeof(text), "an unknown number of events: %s", cause);
    CHECK(r, otf2,
          OTF2_MarkerWriter_WriteMarker(otf2->markers, at_ns, 0, MARKER_LOST, scope,
                                        scope == OTF2_MARKER_SCOPE_GLOBAL ? OTF2_UNDEFINED_UINT64 : location,
                                        text));
    return r;
}

static int otf2_event(void *context, const struct export_event *event)
{
    struct otf2 *otf2 = context;
    int r = 0;

    if (event->at_ns > otf2->last_ns)
        otf2->last_ns = event->at_ns;
    if (event->event.kind == EVENT_CALL)
        return put_call(otf2, event);
    if (event->event.kind == EVENT_LOST) {
        CHECK(r, otf2,
              OTF2_EvtWriter_ParameterUnsignedInt(otf2->events, NULL, event->at_ns, PARAMETER_LOST,
                                                  event->count));
        otf2->event_counts[otf2->location]++;
        return r < 0 ? r
                     : put_lost(otf2, event->at_ns, OTF2_MARKER_SCOPE_LOCATION, otf2->location, event->count,
                                event->cause);
    }
    CHECK(r, otf2, OTF2_EvtWriter_Leave(otf2->events, NULL, event->at_ns, (OTF2_RegionRef)event->function));
    otf2->event_counts[otf2->location]++;
    return r;
}

static int otf2_thread_end(void *context)
{
    struct otf2 *otf2 = context;
    int r = 0;

    CHECK(r, otf2, OTF2_Archive_CloseEvtWriter(otf2->archive, otf2->events));
    return r;
}

static int otf2_gap(void *context, const struct export_gap *gap)
{
    struct otf2 *otf2 = context;
    const uint64_t duration = gap->to_ns > gap->from_ns ? gap->to_ns - gap->from_ns : 0;
    char text[600];
    int r = 0;

    otf2->gaps++;
    if (!gap->blind)
        return put_lost(
            otf2, gap->from_ns, gap->thread ? OTF2_MARKER_SCOPE_LOCATION : OTF2_MARKER_SCOPE_GLOBAL,
            gap->thread ? (uint64_t)(gap->thread - otf2->run.threads) : 0, gap->count, gap->cause);
    snprintf(text, sizeof(text), "%s: %s", gap->name, gap->cause);
    CHECK(r, otf2,
          OTF2_MarkerWriter_WriteMarker(otf2->markers, gap->from_ns, duration, MARKER_BLIND,
                                        OTF2_MARKER_SCOPE_GLOBAL, OTF2_UNDEFINED_UINT64, text));
    return r;
}

static const struct export_sink sink = {
    .wants_sites = true,
    .thread = otf2_thread,
    .event = otf2_event,
    .thread_end = otf2_thread_end,
    .gap = otf2_gap,
};

static int write_archive(struct otf2 *otf2)
{
    int r;

    otf2->event_counts = calloc(otf2->run.thread_count + 1, sizeof(*otf2->event_counts));
    if (!otf2->event_counts)
        return error_no_memory(otf2->run.err);
    r = open_archive(otf2);
    if (r == 0)
        r = define_begin(otf2);
    if (r == 0)
        r = export_walk(&otf2->run, &sink, otf2);
    if (r == 0)
        r = define_end(otf2);
    CHECK(r, otf2, OTF2_Archive_CloseMarkerWriter(otf2->archive, otf2->markers));
    CHECK(r, otf2, OTF2_Archive_CloseGlobalDefWriter(otf2->archive, otf2->definitions));
    CHECK(r, otf2, OTF2_Archive_Close(take_pointer(otf2->archive)));
    return r;
}

static int write_otf2(struct tracestore *store, const struct tracestore_run *run,
                      const struct export_options *options, FILE *out, struct export_totals *ret_totals,
                      struct error *err)
{
    struct otf2 otf2 = {0};
    int r = export_run_open(&otf2.run, store, run, options, NULL, err);

    if (r == 0)
        r = write_archive(&otf2);
    if (r == 0)
        *ret_totals = otf2.run.totals;
    if (otf2.attributes)
        OTF2_AttributeList_Delete(otf2.attributes);
    if (otf2.archive)
        OTF2_Archive_Close(otf2.archive);
    free(otf2.event_counts);
    id_map_release(&otf2.sites);
    export_run_release(&otf2.run);
    return r;
}

const struct export_format export_otf2 = {
    .name = "otf2",
    .summary = "an Open Trace Format 2 archive, for Vampir and Scalasca",
    .makes_directory = true,
    .write = write_otf2,
};
