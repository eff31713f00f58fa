/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What triggers a flight recorder, as people write it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/number.h"
#include "collector/flight/flight.h"
#include "image/functions/function_names.h"

static int bad(struct error *err, const char *text)
{
    return error_say(err, -EINVAL,
                     "'%.80s' is not a flight trigger (crash, end, exit:nonzero, exit:STATUS, "
                     "call:REGEX, slow:REGEX:200ms)",
                     text);
}

static int compile(const char *expression, regex_t *regex, struct error *err)
{
    char why[96];
    int code = *expression ? regcomp(regex, expression, REG_EXTENDED | REG_NOSUB) : REG_BADPAT;

    if (!code)
        return 0;
    if (*expression)
        regerror(code, regex, why, sizeof(why));
    return error_say(err, -EINVAL, "'%.80s' is not a regular expression: %s", expression,
                     *expression ? why : "it is empty");
}

/* The time stands behind the last colon: names of functions have colons, too. */
static int parse_slow(const char *text, struct flight_trigger *trigger, struct error *err)
{
    const char *colon = strrchr(text, ':');
    AUTO_FREE char *expression = colon ? strndup(text, (size_t)(colon - text)) : NULL;

    if (!colon || !number_parse_duration(colon + 1, &trigger->slow_ns) || !trigger->slow_ns)
        return error_say(err, -EINVAL,
                         "'slow:%.80s' has no time (for example slow:^main$:200ms; us, "
                         "ms or s)",
                         text);
    return expression ? compile(expression, &trigger->function, err) : error_no_memory(err);
}

static int parse_status(const char *text, struct flight_trigger *trigger, struct error *err)
{
    uint64_t status;

    trigger->status = FLIGHT_NONZERO;
    if (!*text || !strcasecmp(text, "nonzero"))
        return 0;
    trigger->status = FLIGHT_ANY;
    if (!strcasecmp(text, "any"))
        return 0;
    if (!number_parse_count(text, &status) || status > 255)
        return error_say(err, -EINVAL, "'%.80s' is not an exit status (any, nonzero, or 0 to 255)", text);
    trigger->status = (int)status;
    return 0;
}

static int parse(const char *text, struct flight_trigger *trigger, struct error *err)
{
    const char *colon = strchr(text, ':'), *rest = colon ? colon + 1 : "";
    size_t length = colon ? (size_t)(colon - text) : strlen(text);

    if (!strcmp(text, "crash") || !strcmp(text, "end")) {
        trigger->event = *text == 'c' ? FLIGHT_CRASH : FLIGHT_END;
        return 0;
    }
    if (length == 4 && !strncmp(text, "exit", 4)) {
        trigger->event = FLIGHT_EXIT;
        return parse_status(rest, trigger, err);
    }
    if (colon && length == 4 && !strncmp(text, "call", 4)) {
        trigger->event = FLIGHT_CALL;
        return compile(rest, &trigger->function, err);
    }
    if (colon && length == 4 && !strncmp(text, "slow", 4)) {
        trigger->event = FLIGHT_SLOW;
        return parse_slow(rest, trigger, err);
    }
    return bad(err, text);
}

int flight_trigger_parse(const char *text, struct flight_trigger *ret_trigger, struct error *err)
{
    struct flight_trigger trigger = {.text = strdup(text)};
    int r = trigger.text ? parse(text, &trigger, err) : error_no_memory(err);

    if (r) {
        free(trigger.text);
        return r;
    }
    *ret_trigger = trigger;
    return 0;
}

bool flight_trigger_wants(const struct flight_trigger *trigger, const struct image_function *function)
{
    return flight_trigger_is_of_function(trigger) &&
           image_function_matching_name(function, &trigger->function);
}

void flight_trigger_release(struct flight_trigger *trigger)
{
    if (trigger->text && flight_trigger_is_of_function(trigger))
        regfree(&trigger->function);
    free(trigger->text);
    *trigger = (struct flight_trigger){0};
}
