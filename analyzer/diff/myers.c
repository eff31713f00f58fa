/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two things keep the common case fast without giving up the minimum: elements that only one side has are
 * edits in every script and are taken out first, and equal ends are cut off at each level.
 *
 * Divide and conquer: the middle snake of an optimal path is found by searching from both corners at once,
 * then the two boxes in front of it and behind it are solved by themselves. A diagonal is x - y; the reach of
 * the path on it is kept as x. Recursion is as deep as the logarithm of D.
 */
#include "analyzer/diff/myers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* What is left of one side when the elements that the other does not have are gone. */
struct side {
    uint32_t *ids;
    size_t *places; /* of ids[i] in the caller's sequence */
    ptrdiff_t count;
    bool *only; /* the caller's */
};

struct search {
    struct side a, b;
    int32_t *forward,
        *backward; /* the furthest x on each diagonal, from either corner; index 0 is in the middle */
};

struct box {
    ptrdiff_t left, right, top, bottom; /* a[left..right), b[top..bottom) */
};

struct point {
    ptrdiff_t x, y;
};

/* One search in one direction: the diagonals it has reached, low to high, and those of the box. */
struct front {
    int32_t *reach;
    ptrdiff_t low, high;
};

/* Widens the front by one diagonal on either side, or narrows it where the box ends: the diagonals of one
 * parity are in use at a time. `outside` is a reach that loses against every other. */
static void widen(struct front *front, ptrdiff_t lowest, ptrdiff_t highest, int32_t outside)
{
    if (front->low > lowest)
        front->reach[--front->low - 1] = outside;
    else
        front->low++;
    if (front->high < highest)
        front->reach[++front->high + 1] = outside;
    else
        front->high--;
}

/* Takes one step with the forward front on diagonal d; returns the x it reaches. */
static ptrdiff_t step_forward(const struct search *search, const struct box *box, const struct front *front,
                              ptrdiff_t d)
{
    ptrdiff_t below = front->reach[d - 1], above = front->reach[d + 1];
    ptrdiff_t x = below < above ? above : below + 1;

    while (x < box->right && x - d < box->bottom && search->a.ids[x] == search->b.ids[x - d])
        x++;
    front->reach[d] = (int32_t)x;
    return x;
}

static ptrdiff_t step_backward(const struct search *search, const struct box *box, const struct front *front,
                               ptrdiff_t d)
{
    ptrdiff_t below = front->reach[d - 1], above = front->reach[d + 1];
    ptrdiff_t x = below < above ? below : above - 1;

    while (x > box->left && x - d > box->top && search->a.ids[x - 1] == search->b.ids[x - d - 1])
        x--;
    front->reach[d] = (int32_t)x;
    return x;
}

/* A point on an optimal path through the box, which is not empty on either side and begins and ends with
 * edits. */
static struct point find_middle(const struct search *search, const struct box *box)
{
    ptrdiff_t lowest = box->left - box->bottom, highest = box->right - box->top;
    ptrdiff_t start = box->left - box->top, end = box->right - box->bottom;
    struct front forward = {search->forward, start, start}, backward = {search->backward, end, end};
    bool odd = (start - end) & 1; /* the fronts meet after a forward step if the number of edits is odd */

    forward.reach[start] = (int32_t)box->left;
    backward.reach[end] = (int32_t)box->right;
    for (;;) {
        widen(&forward, lowest, highest, -1);
        for (ptrdiff_t d = forward.high; d >= forward.low; d -= 2) {
            ptrdiff_t x = step_forward(search, box, &forward, d);

            if (odd && backward.low <= d && d <= backward.high && backward.reach[d] <= x)
                return (struct point){x, x - d};
        }
        widen(&backward, lowest, highest, INT32_MAX);
        for (ptrdiff_t d = backward.high; d >= backward.low; d -= 2) {
            ptrdiff_t x = step_backward(search, box, &backward, d);

            if (!odd && forward.low <= d && d <= forward.high && x <= forward.reach[d])
                return (struct point){x, x - d};
        }
    }
}

static void mark(struct side *side, ptrdiff_t from, ptrdiff_t to)
{
    for (ptrdiff_t i = from; i < to; i++)
        side->only[side->places[i]] = true;
}

static void solve(struct search *search, struct box box)
{
    const uint32_t *a = search->a.ids, *b = search->b.ids;
    struct point middle;

    while (box.left < box.right && box.top < box.bottom && a[box.left] == b[box.top])
        box.left++, box.top++;
    while (box.left < box.right && box.top < box.bottom && a[box.right - 1] == b[box.bottom - 1])
        box.right--, box.bottom--;
    if (box.left == box.right || box.top == box.bottom) {
        mark(&search->a, box.left, box.right);
        mark(&search->b, box.top, box.bottom);
        return;
    }
    middle = find_middle(search, &box);
    solve(search, (struct box){box.left, middle.x, box.top, middle.y});
    solve(search, (struct box){middle.x, box.right, middle.y, box.bottom});
}

/* Keeps the ids of `all` that the other side has, and marks the rest. `other` is a bitmap of the other side.
 */
static int side_init(struct side *side, const uint32_t *all, size_t count, const unsigned char *other,
                     bool *only)
{
    side->ids = malloc((count + 1) * sizeof(*side->ids));
    side->places = malloc((count + 1) * sizeof(*side->places));
    side->only = only;
    if (!side->ids || !side->places)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        only[i] = !(other[all[i] / 8] & 1u << all[i] % 8);
        if (only[i])
            continue;
        side->ids[side->count] = all[i];
        side->places[side->count++] = i;
    }
    return 0;
}

static void side_release(struct side *side)
{
    free(side->ids);
    free(side->places);
}

static uint32_t largest(const uint32_t *ids, size_t count, uint32_t so_far)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] > so_far)
            so_far = ids[i];
    return so_far;
}

static unsigned char *make_bitmap(const uint32_t *ids, size_t count, uint32_t last)
{
    unsigned char *bitmap = calloc((size_t)last / 8 + 1, 1);

    for (size_t i = 0; bitmap && i < count; i++)
        bitmap[ids[i] / 8] |= (unsigned char)(1u << ids[i] % 8);
    return bitmap;
}

int myers_diff(const uint32_t *a, size_t n, const uint32_t *b, size_t m, bool *a_only, bool *b_only)
{
    uint32_t last = largest(b, m, largest(a, n, 0));
    AUTO_FREE unsigned char *in_a = make_bitmap(a, n, last), *in_b = make_bitmap(b, m, last);
    AUTO_FREE int32_t *reaches = NULL;
    struct search search = {0};
    size_t diagonals;
    int r = in_a && in_b ? 0 : -ENOMEM;

    if (n >= INT32_MAX || m >= INT32_MAX)
        return -EOVERFLOW;
    if (r >= 0)
        r = side_init(&search.a, a, n, in_b, a_only);
    if (r >= 0)
        r = side_init(&search.b, b, m, in_a, b_only);
    if (r >= 0) {
        /* From -m to n, and one more on either side for the reaches outside. */
        diagonals = (size_t)search.a.count + (size_t)search.b.count + 3;
        reaches = malloc(2 * diagonals * sizeof(*reaches));
        r = reaches ? 0 : -ENOMEM;
    }
    if (r >= 0) {
        search.forward = reaches + search.b.count + 1;
        search.backward = search.forward + diagonals;
        solve(&search, (struct box){0, search.a.count, 0, search.b.count});
    }
    side_release(&search.a);
    side_release(&search.b);
    return r;
}
