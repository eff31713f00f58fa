/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: codec_bench ROUNDS DIR...
 *
 * What each codec makes of the call traces of a folder, one set: its .u16 files, each a thread (little-endian
 * 16-bit words: n a call of function n, 0 a return). Every thread goes through a segment_builder and is cut
 * as the writer cuts it. Prints a JSON array with an object for each DIR:
 *
 *   bytes             of all segments with their headers, sealed; checksum is FNV-1a of them
 *   encode            ns an event, from the function's number to the closed segment
 *   seal              ns an event for sealing the segments
 *   decode            ns an event, back, by segment_decoder
 *   words_encode, words_decode   the same by the codec alone, between words and code
 *   worst             ns of the worst append
 *   worst_millionth   ns of the one that only one in a million is worse than
 *   worst_close       ns of closing a segment, before it is sealed, at worst
 *
 * The worst ones are by the clock: each append is timed in WORST_ROUNDS passes, and the least of its times
 * counts, since interrupts and other processes do not come to the same event in every pass. The others are
 * by the processor time of this thread, medians of ROUNDS passes.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "store/segment/segment.h"
#include "tests/bench/codec_parlot.h"

#define SEGMENT_EVENTS ((uint64_t)4 << 20) /* as in writer.c */
#define SEGMENT_BYTES ((size_t)64 << 10)
#define ROUNDS_MAX 99
#define WORST_ROUNDS 5

static const struct codec *const codecs[] = {&codec_parlot, &codec_prediction};

/* In place of the store's, which does not know ParLOT's. */
const struct codec *codec_find(unsigned id)
{
    return id == CODEC_PARLOT_ID ? &codec_parlot : id == codec_prediction.id ? &codec_prediction : NULL;
}

struct thread_words {
    uint16_t *words;
    size_t count;
};

struct trace_set {
    struct thread_words *threads;
    size_t count, capacity;
    uint64_t events;
    unsigned functions;
};

/* The segments of all threads, one after the other. */
struct segments {
    struct closed_segment *first, **last;
    uint64_t count;
    uint64_t bytes, checksum; /* once they are sealed */
};

struct result {
    struct segments segments;
    uint64_t encode, seal, words_encode, decode, words_decode; /* of all events */
    uint32_t worst, worst_millionth, worst_close;
};

static void fail(const char *what, const char *path)
{
    fprintf(stderr, "codec_bench: %s: %s\n", path, what);
    exit(1);
}

static void *must(void *memory)
{
    if (!memory)
        fail("out of memory", "memory");
    return memory;
}

static void check(bool fine, const char *what)
{
    if (!fine)
        fail(what, "codec");
}

static uint64_t cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* ------------------------------------------------------------------------------------------ sets */

/* The file's words without returns from calls that are not in it: a forked child's trace may have some. */
static struct thread_words read_thread(const char *path)
{
    AUTO_FCLOSE FILE *file = fopen(path, "rb");
    struct thread_words thread = {0};
    struct stat status;
    size_t read, depth = 0;

    if (!file || fstat(fileno(file), &status))
        fail("cannot be opened", path);
    thread.words = must(malloc((size_t)status.st_size + 2));
    read = fread(thread.words, 2, (size_t)status.st_size / 2, file);
    for (size_t i = 0; i < read; i++) {
        if (!thread.words[i] && !depth)
            continue;
        depth += thread.words[i] ? 1 : -(size_t)1;
        thread.words[thread.count++] = thread.words[i];
    }
    return thread;
}

static int is_trace(const struct dirent *entry)
{
    const char *suffix = strrchr(entry->d_name, '.');

    return suffix && strcmp(suffix, ".u16") == 0;
}

static void count_functions(struct trace_set *set)
{
    AUTO_FREE bool *used = must(calloc(UINT16_MAX + 1, sizeof(*used)));

    for (size_t i = 0; i < set->count; i++)
        for (size_t j = 0; j < set->threads[i].count; j++)
            used[set->threads[i].words[j]] = true;
    for (int id = 1; id <= UINT16_MAX; id++)
        set->functions += used[id];
}

static void read_set(const char *dir, struct trace_set *set)
{
    struct dirent **names;
    int count = scandir(dir, &names, is_trace, alphasort);

    if (count < 1)
        fail("no .u16 file in it", dir);
    *set = (struct trace_set){.threads = must(calloc((size_t)count, sizeof(*set->threads)))};
    for (int i = 0; i < count; i++) {
        char path[4096];

        snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
        free(names[i]);
        set->threads[set->count] = read_thread(path);
        set->events += set->threads[set->count++].count;
    }
    free(names);
    if (!set->events)
        fail("no events", dir);
    count_functions(set);
}

static void release_set(struct trace_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->threads[i].words);
    free(set->threads);
}

/* ------------------------------------------------------------------------------------------ encoding */

static void segments_free(struct segments *segments)
{
    while (segments->first) {
        struct closed_segment *next = segments->first->next;

        closed_segment_free(segments->first);
        segments->first = next;
    }
}

static void close_segment(struct segment_builder *builder, struct segments *segments)
{
    struct closed_segment *closed = NULL;

    check(segment_builder_close(builder, &closed) == 0, "a segment cannot be closed");
    closed->next = NULL;
    *segments->last = closed;
    segments->last = &closed->next;
    segments->count++;
}

/* What a flush does with closed segments; returns how long it took. */
static uint64_t seal_segments(struct segments *segments)
{
    uint64_t begun = cpu_ns();

    for (struct closed_segment *closed = segments->first; closed; closed = closed->next) {
        AUTO_BYTES room = {0};
        struct bytes sealed = {0};
        struct segment_parts parts;

        check(segment_parse(closed->payload.data, closed->payload.size, &room, &parts) == 0 &&
                  segment_seal(&parts, &sealed) == 0,
              "a segment cannot be sealed");
        bytes_release(&closed->payload);
        closed->payload = sealed;
    }
    return cpu_ns() - begun;
}

static inline void append(struct segment_builder *builder, uint16_t word)
{
    int code = word ? segment_builder_call(builder, word, 0, false) : segment_builder_return(builder);

    check(code == 0, "an event is refused");
}

static inline bool is_full(const struct segment_builder *builder)
{
    size_t bytes = segment_builder_bytes(builder);

    return builder->event_count >= SEGMENT_EVENTS ||
           (bytes >= SEGMENT_BYTES && bytes >= 2 * builder->first_bytes);
}

/* One pass over a set; returns how long it took. */
static uint64_t encode_set(const struct codec *codec, const struct trace_set *set, struct segments *segments)
{
    uint64_t begun = cpu_ns();

    *segments = (struct segments){.last = &segments->first};
    for (size_t i = 0; i < set->count; i++) {
        const struct thread_words *thread = &set->threads[i];
        struct segment_builder builder;

        segment_builder_init(&builder, codec, 0);
        for (size_t j = 0; j < thread->count; j++) {
            append(&builder, thread->words[j]);
            if (is_full(&builder))
                close_segment(&builder, segments);
        }
        if (builder.event_count)
            close_segment(&builder, segments);
        segment_builder_release(&builder);
    }
    return cpu_ns() - begun;
}

static inline uint32_t clock_since(uint64_t *last)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC), passed = now - *last;

    *last = now;
    return passed < UINT32_MAX ? (uint32_t)passed : UINT32_MAX;
}

static inline void keep_least(uint32_t *least, uint32_t value)
{
    if (value < *least)
        *least = value;
}

/* The same with a time for each append (in `events`) and each closing of a segment. */
static void time_set(const struct codec *codec, const struct trace_set *set, uint32_t *events,
                     uint32_t *closes)
{
    struct segments segments = {.last = &segments.first};

    for (size_t i = 0; i < set->count; i++) {
        const struct thread_words *thread = &set->threads[i];
        struct segment_builder builder;
        uint64_t last;

        segment_builder_init(&builder, codec, 0);
        for (size_t j = 0; j < thread->count; j++) {
            last = clock_ns(CLOCK_MONOTONIC);
            append(&builder, thread->words[j]);
            keep_least(events++, clock_since(&last));
            if (is_full(&builder) || j + 1 == thread->count) {
                close_segment(&builder, &segments);
                keep_least(closes++, clock_since(&last));
            }
        }
        segment_builder_release(&builder);
    }
    segments_free(&segments);
}

/* ------------------------------------------------------------------------------------------ the codec alone
 */

/* The words of a segment; its time to decode is added to the result. */
static uint16_t *decode_words(const struct codec *codec, const struct section *code, uint64_t count,
                              uint64_t *decode_ns)
{
    uint16_t *words = must(malloc(count * sizeof(*words)));
    uint64_t begun = cpu_ns();
    struct codec_decoder *decoder = must(codec->decoder_new(code->data, code->size));

    for (uint64_t i = 0; i < count; i++)
        check(codec->decode(decoder, &words[i]) == 0, "a segment cannot be decoded");
    check(codec->at_end(decoder), "a segment has a rest");
    codec->decoder_free(decoder);
    *decode_ns += cpu_ns() - begun;
    return words;
}

/* Both ways of each segment, and that they agree. */
static void pass_words(const struct codec *codec, const struct segments *segments, uint64_t *encode_ns,
                       uint64_t *decode_ns)
{
    struct codec_encoder *encoder = must(codec->encoder_new());
    struct codec_tail tail;

    *encode_ns = *decode_ns = 0;
    for (const struct closed_segment *closed = segments->first; closed; closed = closed->next) {
        AUTO_FREE uint16_t *words = NULL;
        AUTO_BYTES room = {0};
        struct segment_parts parts;
        const struct section *code = &parts.sections[SECTION_CODE];
        uint64_t begun;

        check(segment_parse(closed->payload.data, closed->payload.size, &room, &parts) == 0,
              "a segment is damaged");
        words = decode_words(codec, code, closed->event_count, decode_ns);
        begun = cpu_ns();
        codec->encoder_reset(encoder);
        for (uint64_t i = 0; i < closed->event_count; i++)
            check(codec->encode(encoder, words[i]) == 0, "a word is refused");
        codec->snapshot(encoder, &tail);
        *encode_ns += cpu_ns() - begun;
        check(tail.keep + tail.size == code->size && memcmp(encoder->code.data, code->data, tail.keep) == 0 &&
                  memcmp(tail.data, code->data + tail.keep, tail.size) == 0,
              "the same words gave another code");
    }
    codec->encoder_free(encoder);
}

/* ------------------------------------------------------------------------------------------ decoding */

/* All events of all segments; returns how long it took. The events must be those of the set. */
static uint64_t decode_set(const struct trace_set *set, const struct segments *segments)
{
    const struct closed_segment *closed = segments->first;
    uint64_t begun = cpu_ns();

    for (size_t i = 0; i < set->count; i++) {
        const struct thread_words *thread = &set->threads[i];

        for (size_t j = 0; j < thread->count; closed = closed->next) {
            struct segment_decoder *decoder = NULL;
            AUTO_BYTES room = {0};
            struct segment_parts parts;
            struct event event;
            int code = segment_parse(closed->payload.data, closed->payload.size, &room, &parts);

            check(code == 0 && segment_decoder_open(&parts, closed->first_seq, closed->event_count, 0, false,
                                                    &decoder) == 0,
                  "a segment cannot be opened");
            while ((code = segment_decoder_next(decoder, &event)) == 0) {
                uint16_t word = thread->words[j++];

                check(event.kind == (word ? EVENT_CALL : EVENT_RETURN) && (!word || event.function == word),
                      "another event came back");
            }
            check(code == 1, "a segment is damaged");
            segment_decoder_free(decoder);
        }
    }
    return cpu_ns() - begun;
}

/* ------------------------------------------------------------------------------------------ measuring */

static int compare_u64(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static uint64_t median(uint64_t *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), compare_u64);
    return values[count / 2];
}

static int compare_down(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return (left < right) - (left > right);
}

static uint32_t greatest(const uint32_t *values, uint64_t count)
{
    uint32_t most = 0;

    for (uint64_t i = 0; i < count; i++)
        if (values[i] > most)
            most = values[i];
    return most;
}

static void measure_worst(const struct codec *codec, const struct trace_set *set, struct result *result)
{
    AUTO_FREE uint32_t *events = must(malloc(set->events * sizeof(*events)));
    AUTO_FREE uint32_t *closes = must(malloc(result->segments.count * sizeof(*closes)));

    memset(events, 0xff, set->events * sizeof(*events));
    memset(closes, 0xff, result->segments.count * sizeof(*closes));
    for (int i = 0; i < WORST_ROUNDS; i++)
        time_set(codec, set, events, closes);
    result->worst_close = greatest(closes, result->segments.count);
    qsort(events, set->events, sizeof(*events), compare_down);
    result->worst = events[0];
    result->worst_millionth = events[set->events / 1000000];
}

static void sum_up(struct segments *segments)
{
    segments->checksum = 0xcbf29ce484222325u;
    for (const struct closed_segment *closed = segments->first; closed; closed = closed->next) {
        segments->bytes += closed->payload.size;
        for (size_t i = 0; i < closed->payload.size; i++)
            segments->checksum = (segments->checksum ^ closed->payload.data[i]) * 0x100000001b3u;
    }
}

static void measure(const struct codec *codec, const struct trace_set *set, int rounds, struct result *result)
{
    uint64_t encode[ROUNDS_MAX], seal[ROUNDS_MAX], words_encode[ROUNDS_MAX], decode[ROUNDS_MAX],
        words_decode[ROUNDS_MAX];

    *result = (struct result){0};
    for (int i = 0; i < rounds; i++) {
        segments_free(&result->segments);
        encode[i] = encode_set(codec, set, &result->segments);
        seal[i] = seal_segments(&result->segments);
        pass_words(codec, &result->segments, &words_encode[i], &words_decode[i]);
        decode[i] = decode_set(set, &result->segments);
    }
    result->encode = median(encode, rounds);
    result->seal = median(seal, rounds);
    result->words_encode = median(words_encode, rounds);
    result->decode = median(decode, rounds);
    result->words_decode = median(words_decode, rounds);
    sum_up(&result->segments);
    measure_worst(codec, set, result);
    segments_free(&result->segments);
}

static void print_result(const struct codec *codec, const struct trace_set *set, const struct result *result)
{
    double events = (double)set->events;

    printf("\"%s\": {\"segments\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"checksum\": \"%016" PRIx64
           "\", \"encode\": %.2f, \"seal\": %.2f, \"words_encode\": %.2f, \"decode\": %.2f, "
           "\"words_decode\": %.2f, "
           "\"worst\": %u, \"worst_millionth\": %u, \"worst_close\": %u}",
           codec->name, result->segments.count, result->segments.bytes, result->segments.checksum,
           (double)result->encode / events, (double)result->seal / events,
           (double)result->words_encode / events, (double)result->decode / events,
           (double)result->words_decode / events, result->worst, result->worst_millionth,
           result->worst_close);
}

static void measure_set(const char *dir, int rounds)
{
    struct trace_set set;

    read_set(dir, &set);
    printf("{\"events\": %" PRIu64 ", \"functions\": %u, \"threads\": %zu, \"codecs\": {", set.events,
           set.functions, set.count);
    for (size_t i = 0; i < ARRAY_SIZE(codecs); i++) {
        struct result result;

        measure(codecs[i], &set, rounds, &result);
        printf(i ? ", " : "");
        print_result(codecs[i], &set, &result);
    }
    printf("}}");
    release_set(&set);
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[1]) : 0;

    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: codec_bench ROUNDS DIR...\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        printf("%s", i == 2 ? "[" : ",\n ");
        measure_set(argv[i], rounds);
        fflush(stdout);
    }
    printf("]\n");
    return 0;
}
