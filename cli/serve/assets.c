/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/serve/assets.h"

#include "analyzer/picture/flame_graph_js.h"
#include "cli/serve/openapi_json.h"
#include "cli/serve/serve_css.h"
#include "cli/serve/serve_js.h"

static const char icon_svg[] =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><rect x=\"1\" y=\"10\" width=\"14\" "
    "height=\"4\" fill=\"#0072b2\"/><rect x=\"1\" y=\"6\" width=\"9\" height=\"4\" fill=\"#e69f00\"/><rect "
    "x=\"3\" y=\"2\" width=\"4\" height=\"4\" fill=\"#d55e00\"/></svg>\n";

#define ASSET(text) \
    { \
        text, sizeof(text) - 1 \
    }

const struct asset *asset_of(enum route_kind kind)
{
    static const struct asset style = ASSET(serve_css), script = ASSET(serve_js), icon = ASSET(icon_svg),
                              flame_script = ASSET(flame_graph_js), openapi = ASSET(openapi_json);

    switch (kind) {
    case ROUTE_STYLE:
        return &style;
    case ROUTE_SCRIPT:
        return &script;
    case ROUTE_FLAME_SCRIPT:
        return &flame_script;
    case ROUTE_ICON:
        return &icon;
    case ROUTE_OPENAPI:
        return &openapi;
    default:
        return NULL;
    }
}
