/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>

#include "analyzer/order/order_words.h"
#include "cli/common/output.h"
#include "cli/live/stat_order.h"

static json_t *text_of(const struct order_tree *order, uint32_t number)
{
    return number ? cli_json_text(sample_text(order->set, number)) : json_null();
}

static json_t *address_of(uint64_t address)
{
    return address == SAMPLE_NO_ADDRESS ? json_null() : cli_json_count(address);
}

static json_t *threads_of(const struct order_tree *order, uint32_t node)
{
    const struct prefix_node *at = &order->tree->nodes[node];
    json_t *threads = json_array();

    for (size_t i = 0; i < at->count; i++) {
        const struct sample_thread *thread = &order->set->threads[order->tree->threads[at->first + i]];

        json_array_append_new(threads, text_of(order, thread->label));
    }
    return threads;
}

/* The finished iterations of each loop around, the outermost first; null where they are not known. */
static json_t *iterations_of(const struct order_tree *order, uint32_t node)
{
    json_t *iterations = json_array();
    uint32_t number = order->nodes[node].point;

    for (uint32_t i = 0; number != PREFIX_NONE && i < order->points[number].depth; i++) {
        const struct order_iteration *iteration = &order->points[number].iterations[i];

        json_array_append_new(iterations, iteration->known ? cli_json_count(iteration->count) : json_null());
    }
    return iterations;
}

static json_t *variables_of(const struct order_tree *order, uint32_t node)
{
    json_t *variables = json_object();
    uint32_t number = order->nodes[node].point;

    for (uint32_t i = 0; number != PREFIX_NONE && i < order->points[number].depth; i++) {
        const struct order_variable *variable = &order->variables[number][i];

        if (variable->name)
            json_object_set_new(variables, variable->name, json_integer(variable->value));
    }
    return variables;
}

static void add_place(const struct order_tree *order, uint32_t node, json_t *object)
{
    const struct sample_place *place = order_tree_place(order, node);

    json_object_set_new(object, "function", text_of(order, place->function));
    json_object_set_new(object, "file", text_of(order, place->file));
    json_object_set_new(object, "line", place->line ? json_integer(place->line) : json_null());
    json_object_set_new(object, "image",
                        place->image == SAMPLE_NO_IMAGE
                            ? json_null()
                            : text_of(order, order->set->images[place->image].path));
    json_object_set_new(object, "address", address_of(place->address));
    json_object_set_new(object, "inlined", json_boolean(place->flags & SAMPLE_INLINED));
    json_object_set_new(object, "iterations", iterations_of(order, node));
    json_object_set_new(object, "variables", variables_of(order, node));
}

/* The properties of a branch of the tree. */
static json_t *branch_of(const struct order_tree *order, uint32_t node)
{
    const struct order_node *at = &order->nodes[node];
    json_t *object = json_object();

    json_object_set_new(object, "count", cli_json_count(order->tree->nodes[node].count));
    json_object_set_new(object, "in", cli_json_text(order_words_function(order, node)));
    json_object_set_new(object, "rank", at->flags & ORDER_NODE_RANKED ? json_integer(at->rank) : json_null());
    json_object_set_new(object, "least", json_boolean(at->flags & ORDER_NODE_LEAST));
    json_object_set_new(object, "most", json_boolean(at->flags & ORDER_NODE_MOST));
    json_object_set_new(object, "ordered", json_boolean(!(at->flags & ORDER_NODE_UNORDERED)));
    json_object_set_new(object, "assumed", json_boolean(at->flags & ORDER_NODE_ASSUMED));
    add_place(order, node, object);
    return object;
}

/* One class: a branch of the node that decides which threads are behind, with its threads. */
static json_t *class_of(const struct order_tree *order, uint32_t node)
{
    json_t *object = branch_of(order, node);

    json_object_set_new(object, "threads", threads_of(order, node));
    return object;
}

/* The branches of the node that decides which threads are behind, or of the first branching. */
static json_t *classes_of(const struct order_tree *order)
{
    uint32_t node = order->decided != PREFIX_NONE ? order->decided : order_tree_branching(order);
    const struct prefix_node *at = &order->tree->nodes[node];
    json_t *classes = json_array();

    for (uint32_t i = 0; i < at->child_count; i++)
        json_array_append_new(classes, class_of(order, at->first_child + i));
    return classes;
}

static json_t *behind_of(const struct order_tree *order)
{
    const struct prefix_node *at;

    if (order->decided == PREFIX_NONE)
        return json_null();
    at = &order->tree->nodes[order->decided];
    for (uint32_t i = 0; i < at->child_count; i++)
        if (order->nodes[at->first_child + i].flags & ORDER_NODE_LEAST)
            return class_of(order, at->first_child + i);
    return json_null();
}

static json_t *apart_of(const struct order_tree *order)
{
    const struct prefix_node *root = &order->tree->nodes[0];
    json_t *classes = json_array();

    for (uint32_t i = 0; i < root->child_count; i++)
        if (order->nodes[root->first_child + i].flags & ORDER_NODE_APART)
            json_array_append_new(classes, class_of(order, root->first_child + i));
    return classes;
}

/* All nodes in one array, each with the number of its parent: a stack may be deeper than readers of JSON
 * bear. */
static json_t *tree_of(const struct order_tree *order)
{
    json_t *nodes = json_array();

    for (uint32_t i = 1; i < order->tree->node_count; i++) {
        json_t *object = branch_of(order, i);

        json_object_set_new(object, "node", json_integer(i));
        json_object_set_new(object, "parent", json_integer(order->tree->nodes[i].parent));
        json_array_append_new(nodes, object);
    }
    return nodes;
}

json_t *stat_order_json(const struct order_tree *order)
{
    char *words = NULL;
    json_t *object;

    if (order_words(order, &words) < 0)
        return NULL;
    object = json_object();
    json_object_set_new(object, "words", cli_json_text(words));
    json_object_set_new(object, "behind", behind_of(order));
    json_object_set_new(object, "last",
                        order->last != PREFIX_NONE ? class_of(order, order->last) : json_null());
    json_object_set_new(object, "apart", apart_of(order));
    json_object_set_new(object, "classes", classes_of(order));
    json_object_set_new(object, "tree", tree_of(order));
    json_object_set_new(object, "values_read", cli_json_count(order->values_read));
    free(words);
    return object;
}
