/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl go layout: what a tracer of goroutines knows of a Go program, or why it knows too little. */
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/common/table.h"
#include "cli/go/go_commands.h"
#include "image/go/go_layout.h"

static const char *source_of(const struct go_layout *layout, enum go_offset offset)
{
    if (layout->offsets[offset] == GO_NO_OFFSET)
        return "not in this version";
    if (!layout->from_code[offset])
        return layout->from_dwarf ? "debug information" : "table of versions";
    if (layout->from_dwarf && layout->from_table)
        return "code, confirmed by debug information and the table of versions";
    if (layout->from_dwarf)
        return "code, confirmed by debug information";
    return layout->from_table ? "code, confirmed by the table of versions" : "code";
}

static void print_json(const struct go_layout *layout)
{
    json_t *offsets = json_object(), *reasons = json_array(), *functions = json_object();

    for (size_t i = 0; i < GO_OFFSETS; i++)
        json_object_set_new(
            offsets, go_offset_name((enum go_offset)i),
            layout->offsets[i] == GO_NO_OFFSET
                ? json_null()
                : json_pack("{s:i, s:b}", "offset", (int)layout->offsets[i], "code", layout->from_code[i]));
    for (size_t i = 0; i < layout->wait_reason_count; i++)
        json_array_append_new(reasons, cli_json_text(layout->wait_reasons[i]));
    for (size_t i = 0; i < GO_ENTRIES; i++)
        if (layout->entries[i].name)
            json_object_set_new(functions, layout->entries[i].name,
                                json_pack("{s:o, s:o, s:i}", "address",
                                          cli_json_count(layout->entries[i].address), "size",
                                          cli_json_count(layout->entries[i].size), "variants",
                                          (int)layout->entries[i].variants));
    AUTO_JSON json_t *document =
        json_pack("{s:o, s:b, s:b, s:o, s:o, s:o}", "version", cli_json_text(layout->version.text), "dwarf",
                  layout->from_dwarf, "known_version", layout->from_table, "offsets", offsets, "wait_reasons",
                  reasons, "functions", functions);
    cli_json_print(document);
}

static void print_functions(const struct go_layout *layout, struct table *table)
{
    for (size_t i = 0; i < GO_ENTRIES; i++) {
        const struct go_entry_place *place = &layout->entries[i];

        table_cell(table, place->name ? place->name : go_entry_name((enum go_entry)i));
        if (place->name) {
            table_cell_format(table, "0x%llx", (unsigned long long)place->address);
            table_cell_count(table, place->size);
        } else {
            table_cell(table, "-");
            table_cell(table, "-");
        }
    }
}

static int print_text(const struct go_layout *layout)
{
    static const char *const offset_titles[] = {"FIELD", ">OFFSET", "FROM"};
    static const char *const function_titles[] = {"FUNCTION", ">ADDRESS", ">BYTES"};
    struct table *table;

    text_print(stdout, "%s\n\n", layout->version.text);
    table = table_new(stdout, offset_titles, 3, cli_colour());
    for (size_t i = 0; table && i < GO_OFFSETS; i++) {
        table_cell(table, go_offset_name((enum go_offset)i));
        if (layout->offsets[i] == GO_NO_OFFSET)
            table_cell(table, "-");
        else
            table_cell_count(table, (uint64_t)layout->offsets[i]);
        table_cell(table, source_of(layout, (enum go_offset)i));
    }
    if (!table || table_free(table) < 0)
        return -ENOMEM;
    putchar('\n');
    table = table_new(stdout, function_titles, 3, cli_colour());
    if (table)
        print_functions(layout, table);
    if (!table || table_free(table) < 0)
        return -ENOMEM;
    fputs("\nWait reasons:", stdout);
    for (size_t i = 0; i < layout->wait_reason_count; i++)
        text_print(stdout, "%s %zu %s", i ? "," : "", i,
                   *layout->wait_reasons[i] ? layout->wait_reasons[i] : "-");
    putchar('\n');
    return 0;
}

static const struct argp argp = {
    .parser = go_parse_binary,
    .args_doc = "BINARY",
    .doc =
        "Show what recording goroutines relies on in a Go program: the runtime's field offsets, "
        "function entries and names of wait reasons.\vEverything is read from the file. Field offsets "
        "are found from the instructions of the runtime and must agree with debug information and the "
        "table of versions; otherwise the program is rejected with exit status 3 and an error line that "
        "names the field and the conflicting sources.",
    .children = cli_common_children,
};

static int run(int argc, char **argv)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    CLEANUP(go_layout_release) struct go_layout layout = {0};
    const char *binary = NULL;
    struct error err = {0};

    cli_parse(&go_layout_command, argc, argv, &binary);
    if (elf_image_open(binary, &image, &err) < 0 || go_layout_read(image, &layout, &err) < 0)
        return cli_fail(&err);
    if (cli.json)
        print_json(&layout);
    else if (print_text(&layout) < 0) {
        error_no_memory(&err);
        return cli_fail(&err);
    }
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command go_layout_command = {
    .name = "go layout",
    .summary = "show the runtime layout that recording relies on",
    .argp = &argp,
    .examples =
        "Show what recording relies on in a program:\n"
        "  tracectl go layout ./server\n",
    .run = run,
};
