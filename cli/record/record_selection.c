/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/record/record_selection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/common/command.h"

#define OTHERS_MAX 3 /* programs that a message names beside the one that it is about */

/* What the images of a recording are, as far as a message that nothing is traced needs it. */
struct untraced {
    const struct traced_image
        *unselected; /* has functions, none of which is wanted: the last program, or library */
    const struct traced_image *refused; /* the first one that cannot be traced for another reason */
    size_t images;
};

static bool is_better(const struct traced_image *image, const struct traced_image *than)
{
    return !than || (image->kind == IMAGE_MAIN && than->kind != IMAGE_MAIN);
}

/* The list of images begins with the last one met. Of programs that run one another (mpirun, a proxy, the
 * program) the last one is meant. False: something is traced. */
static bool find_untraced(const struct recorder *recorder, struct untraced *untraced)
{
    *untraced = (struct untraced){0};
    for (const struct traced_image *image = recorder_images(recorder); image; image = image->next) {
        if (image_is_traced(image) || image->go)
            return false;
        untraced->images++;
        if (image->chosen && image_selects_nothing(image)) {
            if (is_better(image, untraced->unselected))
                untraced->unselected = image;
        } else if (image->chosen || image->go_refusal) {
            untraced->refused = image;
        }
    }
    return true;
}

/* "; also in mpiexec.hydra, sh": other programs that have been looked at. */
static void name_others(const struct recorder *recorder, const struct traced_image *but, char *text,
                        size_t size)
{
    size_t length = 0, count = 0;

    *text = '\0';
    for (const struct traced_image *image = recorder_images(recorder); image; image = image->next) {
        if (image == but || !image->chosen || !image_selects_nothing(image) || ++count > OTHERS_MAX)
            continue;
        length += (size_t)snprintf(text + length, length < size ? size - length : 0, "%s%.60s",
                                   count == 1 ? "; none in " : ", ", path_file_name(image->path));
    }
    if (count > OTHERS_MAX && length < size)
        snprintf(text + length, size - length, " and %zu more", count - OTHERS_MAX);
}

static int nothing_selected(const struct recorder *recorder, const struct record_arguments *arguments,
                            const struct traced_image *image, struct error *err)
{
    const struct asked *asked = &arguments->choice.asked;
    AUTO_FREE char *unmet = asked_text(asked, ASKED_FUNCTIONS, false);
    AUTO_FREE char *all = unmet ? NULL : asked_text(asked, ASKED_FUNCTIONS, true);
    char others[300];

    name_others(recorder, image, others, sizeof(others));
    if (unmet)
        return error_say(err, -ENOTSUP, "no function matches %s (%zu functions in %s%s)", unmet,
                         image->function_count, image->path, others);
    return error_say(err, -ENOTSUP, "--exclude or --filter leaves no function%s%s (of %zu functions in %s%s)",
                     all ? " that matches " : "", all ? all : "", image->function_count, image->path, others);
}

static int no_image(const struct recorder *recorder, const struct record_arguments *arguments, size_t images,
                    struct error *err)
{
    AUTO_FREE char *globs = asked_text(&arguments->choice.asked, ASKED_IMAGES, true);
    size_t left_out;
    const struct recorder_excluded *others = recorder_excluded(recorder, &left_out);

    if (!images && left_out)
        return error_say(err, -ENOTSUP, "nothing was recorded: %s", others[0].why);
    if (!images)
        return error_say(err, -ENOTSUP, "nothing was recorded: no program ran");
    return error_say(err, -ENOTSUP, "no image matches %s (of %zu images)", globs ? globs : "the filter",
                     images);
}

int record_selection_check(const struct recorder *recorder, const struct record_arguments *arguments,
                           struct error *err)
{
    struct untraced untraced;

    if (!find_untraced(recorder, &untraced))
        return 0;
    if (arguments->recorder.content.sync && untraced.images)
        return 0; /* locks and system calls are seen without the program's functions */
    if (untraced.refused && (untraced.refused->plan || !untraced.unselected))
        return error_say(err, -ENOTSUP, "%s",
                         untraced.refused->go_refusal ? untraced.refused->go_refusal
                                                      : untraced.refused->refusal);
    if (untraced.unselected)
        return nothing_selected(recorder, arguments, untraced.unselected, err);
    return no_image(recorder, arguments, untraced.images, err);
}

int record_selection_report(struct recorder *recorder, const struct record_arguments *arguments,
                            struct error *err)
{
    static const struct {
        enum asked_kind kind;
        const char *noun;
    } kinds[] = {{ASKED_FUNCTIONS, "function"}, {ASKED_IMAGES, "image"}};
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof(kinds) / sizeof(*kinds); i++) {
        AUTO_FREE char *unmet = asked_text(&arguments->choice.asked, kinds[i].kind, false);
        char key[40];

        if (!unmet)
            continue;
        if (cli.verbosity >= 0)
            text_print(stderr, "tracectl: note: no %s matches %s\n", kinds[i].noun, unmet);
        snprintf(key, sizeof(key), "no %s matches", kinds[i].noun);
        r = recorder_tag(recorder, key, unmet, err);
    }
    return r;
}
