/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/common/suggestion.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "cli/common/command.h"

enum { WORD_MAX = 32, DISTANCE_MAX = 2, NAMES_MAX = 128 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Letters to add, remove, replace or swap with their neighbour; both words are shorter than WORD_MAX. */
static unsigned edit_distance(const char *a, const char *b)
{
    unsigned rows[WORD_MAX][WORD_MAX];
    size_t height = strlen(a), width = strlen(b);

    for (size_t j = 0; j <= width; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= height; i++) {
        rows[i][0] = (unsigned)i;
        for (size_t j = 1; j <= width; j++) {
            unsigned replaced = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

            rows[i][j] = least(replaced, least(rows[i - 1][j], rows[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                rows[i][j] = least(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    }
    return rows[height][width];
}

const char *suggestion_for(const char *word, const char *const *names, size_t count)
{
    unsigned nearest = DISTANCE_MAX + 1;
    const char *found = NULL;

    for (size_t i = 0; i < count && strlen(word) < WORD_MAX; i++) {
        unsigned distance = strlen(names[i]) < WORD_MAX ? edit_distance(word, names[i]) : nearest;

        if (distance < nearest && 2 * distance < strlen(names[i])) {
            nearest = distance;
            found = names[i];
        }
    }
    return found;
}

/* ------------------------------------------------------------------------------------ options */

/* The long options of an argp and its children, and which letters and names take an argument. */
struct known_options {
    const char *names[NAMES_MAX];
    bool has_argument[NAMES_MAX];
    size_t count;
    bool letter_has_argument[128];
};

static void collect(const struct argp *argp, struct known_options *known)
{
    for (const struct argp_option *option = argp->options;
         option && (option->name || option->key || option->doc); option++) {
        if (option->key > 0 && option->key < 128)
            known->letter_has_argument[option->key] = option->arg != NULL;
        if (option->name && known->count < NAMES_MAX) {
            known->has_argument[known->count] = option->arg != NULL;
            known->names[known->count++] = option->name;
        }
    }
    for (const struct argp_child *child = argp->children; child && child->argp; child++)
        collect(child->argp, known);
}

/* Whether the argument of the long option `word` is the next word. A usage error when `word` is nearly an
 * option. */
static bool check_long(const struct known_options *known, const char *program, const char *word)
{
    char name[WORD_MAX];
    size_t length = strcspn(word, "=");
    const char *meant;

    for (size_t i = 0; i < known->count; i++)
        if (!strncmp(known->names[i], word, length))
            return known->has_argument[i] && !word[length]; /* the option, or an abbreviation of it */
    if (length >= sizeof(name))
        return false;
    memcpy(name, word, length);
    name[length] = '\0';
    meant = suggestion_for(name, known->names, known->count);
    if (meant) {
        text_print(stderr, "%s: unrecognized option '--%s' (did you mean --%s?)\n", program, name, meant);
        exit(EXIT_USAGE);
    }
    return false;
}

/* Whether the argument of the last letter is the next word. */
static bool takes_next(const struct known_options *known, const char *letters)
{
    for (; *letters; letters++)
        if ((unsigned char)*letters < 128 && known->letter_has_argument[(unsigned char)*letters])
            return !letters[1];
    return false;
}

void suggestion_check_options(const struct argp *argp, unsigned flags, int argc, char **argv)
{
    struct known_options known = {.names = {"help", "usage", "version"}, .count = 3};

    collect(argp, &known);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (argv[i][0] != '-' && (flags & ARGP_IN_ORDER))
            return; /* the rest may be another command's */
        if (!strncmp(argv[i], "--", 2))
            i += check_long(&known, argv[0], argv[i] + 2);
        else if (argv[i][0] == '-')
            i += takes_next(&known, argv[i] + 1);
    }
}
