/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How probes are moved between links, with a backend that only notes what it is asked for. */
#include <criterion/criterion.h>
#include <string.h>

#include "collector/budget/attachment.h"

#define SITES 200u
#define FIRST_FUNCTION 100u /* the number of function 0; each function has one place */
#define FIRST_INDEX 7u
#define FUNCTIONS (FIRST_FUNCTION + SITES)
#define PARTS 1000u

static unsigned long offsets[SITES];
static uint64_t cookies[SITES];
static struct plan_probe probes[SITES];
static bool refused_by_kernel[SITES];
static struct plan plan = {.probes = probes, .count = SITES};
static struct traced_image image;
static struct budget_slot slots[FIRST_INDEX + SITES];
static struct attachment attachment;
static enum probe_move moves[FUNCTIONS];
static double rates[FUNCTIONS];

/* What the backend has: links, each with places and the tags of their cookies. */
static struct link {
    unsigned part;
    bool open;
    size_t count;
    unsigned long offsets[SITES];
    uint8_t tags[SITES];
} links[PARTS];
static size_t link_count;
static unsigned closed[PARTS]; /* parts, in the order in which they were closed */
static size_t closed_count;
static bool relinking;
static unsigned removals; /* under way */

static int attach_sites(struct backend *backend, const struct probe_sites *sites, pid_t pid,
                        struct error *err)
{
    struct link *link = &links[link_count++];

    (void)backend;
    (void)err;
    cr_assert_eq(pid, 0);
    *link = (struct link){.part = sites->part, .open = true, .count = sites->count};
    for (size_t i = 0; i < sites->count; i++) {
        link->offsets[i] = sites->offsets[i];
        link->tags[i] = COOKIE_TAG(sites->cookies[i]);
        sites->refused[i] = sites->offsets[i] == 3; /* the kernel's judgement of one place */
    }
    return 0;
}

static void detach_part(struct backend *backend, unsigned part)
{
    (void)backend;
    closed[closed_count++] = part;
    for (size_t i = 0; i < link_count; i++)
        if (links[i].part == part)
            links[i].open = false;
}

static unsigned closing(const struct backend *backend)
{
    (void)backend;
    return removals;
}

static void set_relinking(struct backend *backend, bool is_relinking)
{
    (void)backend;
    relinking = is_relinking;
}

static const struct backend_operations operations = {
    .attach_sites = attach_sites, .detach_part = detach_part, .closing = closing, .relinking = set_relinking};
static struct backend backend = {&operations};
static unsigned heard; /* links that were announced before they were closed */

/* The old link must still be there, and a new one of what stays as well. */
static int before_close(void *context, const struct probe_group *group, struct error *err)
{
    (void)context;
    (void)err;
    heard++;
    for (size_t i = 0; i < link_count; i++)
        if (links[i].part == group->part)
            cr_assert(links[i].open);
    return 0;
}

static bool is_open(unsigned site)
{
    unsigned found = 0;

    for (size_t i = 0; i < link_count; i++)
        for (size_t j = 0; links[i].open && j < links[i].count; j++)
            if (links[i].offsets[j] == site) {
                found++;
                cr_expect_eq(links[i].tags[j], slots[FIRST_INDEX + site].tag, "the newest link counts");
            }
    cr_expect_leq(found, 1, "place %u is in %u links", site, found);
    return found;
}

static bool keeps_even(const void *context, uint32_t function)
{
    (void)context;
    return (function - FIRST_FUNCTION) % 2 == 0;
}

static void add(unsigned first, unsigned count)
{
    size_t *sites = calloc(count + 1, sizeof(*sites));

    for (unsigned i = 0; i < count; i++)
        sites[i] = first + i;
    cr_assert_eq(attachment_add(&attachment, &image, 10, sites, count, NULL), 0);
}

/* Groups of ten places. */
static void begin(void)
{
    char self[] = "/proc/self/exe";

    for (unsigned i = 0; i < SITES; i++) {
        offsets[i] = i;
        cookies[i] = FIRST_INDEX + i;
        probes[i] = (struct plan_probe){.function = i};
    }
    image = (struct traced_image){.path = self,
                                  .plan = &plan,
                                  .first_function = FIRST_FUNCTION,
                                  .first_index = FIRST_INDEX,
                                  .site_count = SITES,
                                  .offsets = offsets,
                                  .cookies = cookies,
                                  .refused_by_kernel = refused_by_kernel};
    cr_assert_eq(elf_image_open(self, &image.elf, NULL), 0);
    attachment = (struct attachment){
        .backend = &backend, .slots = slots, .before_close = before_close, .context = NULL};
    for (unsigned i = 0; i < SITES; i += 10)
        add(i, 10);
}

static void end(void)
{
    attachment_release(&attachment);
    elf_image_free(image.elf);
}

TestSuite(attachment, .init = begin, .fini = end);

static void move(void)
{
    static const struct traced_image *const images[] = {&image};
    static const size_t wholes[] = {10};

    cr_assert_eq(attachment_move(&attachment,
                                 &(struct probe_moves){.moves = moves,
                                                       .rates = rates,
                                                       .count = FUNCTIONS,
                                                       .images = images,
                                                       .wholes = wholes,
                                                       .image_count = 1},
                                 NULL),
                 0);
}

Test(attachment, each_group_has_a_link)
{
    cr_assert_eq(link_count, SITES / 10);
    for (unsigned i = 0; i < SITES; i++)
        cr_assert(is_open(i));
    cr_assert(refused_by_kernel[3] && !refused_by_kernel[4]);
}

Test(attachment, what_goes_is_gone_and_the_rest_of_its_group_stays)
{
    moves[FIRST_FUNCTION + 4] = moves[FIRST_FUNCTION + 25] = PROBE_GOES;
    move();
    for (unsigned i = 0; i < SITES; i++)
        cr_expect_eq(is_open(i), i != 4 && i != 25, "%u", i);
    cr_assert_eq(heard, 2);
    cr_assert_eq(closed_count, 2, "groups that lose nothing keep their links");
}

Test(attachment, groups_that_lose_the_dearest_are_moved_first)
{
    moves[FIRST_FUNCTION + 4] = moves[FIRST_FUNCTION + 25] = moves[FIRST_FUNCTION + 36] = PROBE_GOES;
    rates[FIRST_FUNCTION + 4] = 1;
    rates[FIRST_FUNCTION + 25] = 3;
    rates[FIRST_FUNCTION + 36] = 2;
    move();
    cr_assert_eq(closed_count, 3);
    cr_assert_eq(closed[0], PROBE_PARTS + 2);
    cr_assert_eq(closed[1], PROBE_PARTS + 3);
    cr_assert_eq(closed[2], PROBE_PARTS);
}

Test(attachment, what_has_gone_can_come_back)
{
    moves[FIRST_FUNCTION + 4] = PROBE_GOES;
    move();
    moves[FIRST_FUNCTION + 4] = PROBE_IS_AWAY;
    move();
    cr_assert_not(is_open(4));
    moves[FIRST_FUNCTION + 4] = PROBE_COMES;
    move();
    cr_assert(is_open(4));
    cr_assert_eq(closed_count, 1);
}

Test(attachment, nothing_comes_into_an_image_that_was_left)
{
    moves[FIRST_FUNCTION + 4] = PROBE_GOES;
    move();
    attachment_close_image(&attachment, &image);
    image.left_ns = 1;
    moves[FIRST_FUNCTION + 4] = PROBE_COMES;
    move();
    for (unsigned i = 0; i < SITES; i++)
        cr_assert_not(is_open(i));
}

/* One function after the other comes back: a hundred links of one place each would slow the kernel down. */
Test(attachment, small_groups_become_one)
{
    size_t most = 0;

    for (unsigned i = 0; i < 150; i++) {
        moves[FIRST_FUNCTION + i] = PROBE_GOES;
        move();
        moves[FIRST_FUNCTION + i] = PROBE_COMES;
        move();
        moves[FIRST_FUNCTION + i] = PROBE_STAYS;
        most = attachment.group_count > most ? attachment.group_count : most;
    }
    for (unsigned i = 0; i < SITES; i++)
        cr_expect(is_open(i));
    cr_assert_gt(most, 90);
    cr_assert_leq(most, 98);
}

Test(attachment, joined_groups_are_one_without_what_is_refused)
{
    attachment.groups[1].complete_ns = 5;
    cr_assert_eq(attachment_join(&attachment, 1, keeps_even, NULL, NULL), 0);
    cr_assert_eq(attachment.group_count, 2);
    cr_assert_eq(attachment.groups[1].complete_ns, 5);
    for (unsigned i = 0; i < SITES; i++)
        cr_expect_eq(is_open(i), i < 10 || i % 2 == 0, "%u", i);
}

Test(attachment, relinking_ends_when_the_kernel_has_removed_all)
{
    moves[FIRST_FUNCTION] = PROBE_GOES;
    removals = 1;
    move();
    attachment_poll(&attachment);
    cr_assert(relinking);
    removals = 0;
    attachment_poll(&attachment);
    cr_assert_not(relinking);
}
