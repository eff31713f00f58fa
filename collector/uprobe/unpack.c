/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/unpack.h"

#include <errno.h>
#include <string.h>

void unpack_begin(struct unpacker *unpacker, uint32_t tid)
{
    if (unpacker->tid == tid)
        return;
    unpacker->tid = tid;
    unpacker->reported_ns = 0;
}

void unpack_next_chunk(struct unpacker *unpacker)
{
    unpacker->chunk = (unpacker->chunk + 1) % PACKED_CHUNKS;
    unpacker->length = unpacker->run = 0;
    unpacker->events = unpacker->returns = 0;
}

int unpack_end(struct unpacker *unpacker, uint64_t check)
{
    if (unpacker->next_ns || check != predict_check(&unpacker->predictor))
        return -EBADMSG;
    unpack_next_chunk(unpacker);
    return 0;
}

/* ------------------------------------------------------------------------------------ events */

static void hand_on(struct unpacker *unpacker, const struct wire_event *event, struct unpack_sink *sink)
{
    const struct wire_call_from record = {
        .call =
            {
                .header =
                    {
                        .kind = event->kind,
                        .flags = event->flags,
                        .sp_high = (uint16_t)(event->sp >> 32),
                        .tid = unpacker->tid,
                        .ns = unpacker->next_ns,
                    },
                .sp_low = (uint32_t)event->sp,
                .function = event->function,
            },
        .return_address = event->return_address,
        .gone = event->gone,
    };
    int r = sink->answer < 0
                ? sink->answer
                : sink->handle(sink->context, &record,
                               event->kind == WIRE_CALL_FROM ? sizeof(record) : sizeof(record.call));

    unpacker->next_ns = 0;
    unpacker->events++;
    unpacker->returns += event->kind == WIRE_RETURN;
    sink->records++;
    if (r < 0 || !sink->answer)
        sink->answer = r;
}

static bool is_kind(uint8_t kind)
{
    return kind == WIRE_CALL || kind == WIRE_RETURN || kind == WIRE_CALL_FROM;
}

static int read_symbol(struct unpacker *unpacker, uint32_t number, struct unpack_sink *sink)
{
    struct predictor *predictor = &unpacker->predictor;
    const struct wire_event event = symbol_event(predictor, &predictor->known[number]);

    if (!is_kind(event.kind)) /* unknown number */
        return -EBADMSG;
    predict_pass(predictor, number, &event);
    hand_on(unpacker, &event, sink);
    return 0;
}

/* `count` events came as they were guessed. */
static int read_run(struct unpacker *unpacker, uint32_t count, struct unpack_sink *sink)
{
    struct predictor *predictor = &unpacker->predictor;
    int r = 0;

    while (!r && sink->answer >= 0 && count--)
        r = read_symbol(unpacker, predictor->next[predict_place(predictor)] % PREDICT_KNOWN, sink);
    return r;
}

/* An event that was not guessed; the next guess in this place will be it. */
static int read_surprise(struct unpacker *unpacker, uint32_t number, struct unpack_sink *sink)
{
    struct predictor *predictor = &unpacker->predictor;

    predictor->next[predict_place(predictor)] = (uint16_t)number;
    return read_symbol(unpacker, number, sink);
}

static int read_new_symbol(struct unpacker *unpacker, const struct symbol *symbol, struct unpack_sink *sink)
{
    bool known;

    if (!is_kind(symbol->what & 3))
        return -EBADMSG;
    return read_surprise(unpacker, symbol_number(&unpacker->predictor, symbol, &known), sink);
}

/* ------------------------------------------------------------------------------------ tokens */

/* What is left of the tokens. */
struct reading {
    const uint8_t *at, *end;
};

static uint64_t word(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static uint32_t half(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static int read_near_symbol(struct unpacker *unpacker, const uint8_t *at, struct unpack_sink *sink)
{
    int64_t distance = (int16_t)(at[9] | at[10] << 8);
    const struct symbol symbol = {
        .what = word(at),
        .where = (uint64_t)(at[8] & 15) << SYMBOL_ABOVE_SHIFT | (uint64_t)distance << SYMBOL_DISTANCE_SHIFT,
    };

    return read_new_symbol(unpacker, &symbol, sink);
}

static int read_event(struct unpacker *unpacker, const uint8_t *at, struct unpack_sink *sink)
{
    const struct wire_event event = {
        .kind = at[0],
        .flags = at[1],
        .function = half(at + 2),
        .sp = word(at + 6),
        .return_address = word(at + 14),
        .gone = word(at + 22),
    };

    if (!is_kind(event.kind))
        return -EBADMSG;
    predict_break(&unpacker->predictor, &event);
    hand_on(unpacker, &event, sink);
    return 0;
}

static int read_time(struct unpacker *unpacker, uint64_t ns)
{
    if (!ns || unpacker->next_ns)
        return -EBADMSG;
    unpacker->reported_ns = unpacker->next_ns = ns;
    return 0;
}

/* Bytes that follow a token; -1: there is no such token. */
static int operand_bytes(uint8_t token)
{
    if (token < TOKEN_LONG_RUN)
        return 0;
    if (token < TOKEN_KNOWN + (PREDICT_KNOWN >> 8))
        return 1;
    switch (token) {
    case TOKEN_SYMBOL:
        return 16;
    case TOKEN_NEAR_SYMBOL:
        return 11;
    case TOKEN_EVENT:
        return 30;
    case TOKEN_TIME:
        return 8;
    case TOKEN_TIME_SINCE:
        return 4;
    default:
        return -1;
    }
}

/* A token that says how many events came as they were guessed; 0: it is another one. */
static uint32_t run_of(uint8_t token, const uint8_t *operand)
{
    if (token < TOKEN_LONG_RUN)
        return token - TOKEN_RUN + 1u;
    if (token < TOKEN_KNOWN)
        return ((token - TOKEN_LONG_RUN) << 8u | *operand) + TOKEN_RUN_MAX + 1u;
    return 0;
}

static int read_token(struct unpacker *unpacker, uint8_t token, const uint8_t *operand,
                      struct unpack_sink *sink)
{
    const struct symbol symbol = {.what = token == TOKEN_SYMBOL ? word(operand) : 0,
                                  .where = token == TOKEN_SYMBOL ? word(operand + 8) : 0};

    switch (token) {
    case TOKEN_SYMBOL:
        return read_new_symbol(unpacker, &symbol, sink);
    case TOKEN_NEAR_SYMBOL:
        return read_near_symbol(unpacker, operand, sink);
    case TOKEN_EVENT:
        return read_event(unpacker, operand, sink);
    case TOKEN_TIME:
        return read_time(unpacker, word(operand));
    case TOKEN_TIME_SINCE:
        return unpacker->reported_ns ? read_time(unpacker, unpacker->reported_ns + half(operand)) : -EBADMSG;
    default:
        return read_surprise(unpacker, (token - TOKEN_KNOWN) << 8u | *operand, sink);
    }
}

static int read_next(struct unpacker *unpacker, struct reading *reading, struct unpack_sink *sink)
{
    uint8_t token = *reading->at++;
    const uint8_t *operand = reading->at;
    int bytes = operand_bytes(token);
    uint32_t run, done = unpacker->run;

    if (bytes < 0 || reading->end - reading->at < bytes)
        return -EBADMSG;
    reading->at += bytes;
    run = run_of(token, operand);
    if (run < done) /* a run has been seen to be longer than it is now said to be */
        return -EBADMSG;
    unpacker->run = 0;
    return run ? read_run(unpacker, run - done, sink) : read_token(unpacker, token, operand, sink);
}

int unpack_tokens(struct unpacker *unpacker, const uint8_t *tokens, size_t length, uint32_t run,
                  struct unpack_sink *sink)
{
    struct reading reading = {.end = tokens + length};
    int r = 0;

    if (unpacker->length > length)
        return -EBADMSG;
    reading.at = tokens + unpacker->length;
    while (!r && sink->answer >= 0 && reading.at < reading.end)
        r = read_next(unpacker, &reading, sink);
    unpacker->length = (uint32_t)length;
    if (r || run < unpacker->run)
        return -EBADMSG;
    r = read_run(unpacker, run - unpacker->run, sink);
    unpacker->run = run;
    return r;
}
