#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tracectl serve: pages and API, who may ask, wrong requests, many connections, a store that is written meanwhile.
. "$(dirname "$0")/lib.sh"
needs_capture

TOKEN=0123456789abcdef-token

# Starts a server; $server is its process, $URL its address.
serve() { # options...
    : >"$WORK/listening"
    spawn "$TRACECTL" serve --listen 127.0.0.1:0 "$@" >"$WORK/listening"
    server=$spawned
    wait_until 60 grep -q '^listening on http://127.0.0.1:[0-9]*$' "$WORK/listening"
    URL=$(sed 's/^listening on //' "$WORK/listening")
    export URL
}

# The status of a request; its body is in $WORK/body, its headers in $WORK/head.
ask() { # target, [METHOD], [HEADER: VALUE]...
    "$E2E/serve_ask" "$URL" "$WORK/head" "$WORK/body" "$@"
}

answers() { # status, what ask wants
    local wanted=$1
    shift
    same "$wanted" "$(ask "$@")"
}

pages() {
    answers 200 /
    grep -q '<a href="/runs/1">good</a>' "$WORK/body"
    grep -q '<a href="/runs/2">bad</a>' "$WORK/body"
    answers 200 '/?q=bad'
    grep -q '<a href="/runs/2">bad</a>' "$WORK/body"
    lacks '<a href="/runs/1">good</a>' "$WORK/body"
    answers 200 /runs/1
    grep -q '>million<' "$WORK/body"
    grep -q 'It ended with status 0' "$WORK/body"
    answers 200 '/runs/1?sort=name&q=MAI'
    grep -q '<th scope="row"><a href="/runs/1/function?q=main">main</a></th>' "$WORK/body"
    lacks '>row</a></th>' "$WORK/body"
    answers 303 '/compare?run=1&run=2'
    grep -qi '^Location: /compare/1/2$' "$WORK/head"
    answers 200 /compare/1/2
    grep -q 'diffNLR' "$WORK/body"
    answers 200 /compare/1/2/flame.svg
    grep -q '<script href="/assets/flame_graph.js"/>' "$WORK/body"
    answers 200 '/runs/1/function?q=row'
    grep -q '<a href="/runs/1/function?q=main">main</a>' "$WORK/body"
    answers 200 /runs/1/timeline
    grep -q '>Calls of threads over time<' "$WORK/body"
    grep -q 'title>main, ' "$WORK/body"
    answers 200 '/runs/1/timeline?from=1&to=2'
    lacks 'title>main, ' "$WORK/body"
    answers 200 /runs/1/loops
    answers 200 /runs/1/report
    answers 200 /live
    grep -q 'Nothing is being recorded' "$WORK/body"
}

same_as_command_line() {
    answers 200 /api/v1/runs
    "$TRACECTL" --json runs | cmp - "$WORK/body"
    grep -qi '^Tracectl-Schema: 1$' "$WORK/head"
    answers 200 '/api/v1/runs/2/top?limit=3'
    "$TRACECTL" --json top --limit 3 2 | cmp - "$WORK/body"
    answers 200 '/api/v1/runs/2/top?limit=3&sort=self'
    "$TRACECTL" --json top --limit 3 --sort self 2 | cmp - "$WORK/body"
    answers 200 /api/v1/compare/1/2
    { "$TRACECTL" --json diff 1 2 || true; } | cmp - "$WORK/body"
    answers 200 /api/v1/openapi.json
    same 3.1.0 "$(json_get openapi <"$WORK/body")"
}

metrics() {
    answers 200 /metrics
    grep -qx 'tracectl_store_runs 3' "$WORK/body"
    grep -qx 'tracectl_store_runs_not_ended 0' "$WORK/body"
    grep -q '^tracectl_serve_answers_made_total [1-9]' "$WORK/body"
}

sql() {
    answers 200 '/sql?q=SELECT+name+FROM+runs+ORDER+BY+1'
    grep -q '<td>bad</td>' "$WORK/body"
    answers 200 '/sql.csv?q=SELECT+name+FROM+runs+WHERE+run_id%3D1'
    same $'name\ngood' "$(tr -d '\r' <"$WORK/body")"
    answers 200 '/sql?q=DELETE+FROM+runs'
    grep -q 'not allowed' "$WORK/body"
    answers 400 '/sql.csv?q=DELETE+FROM+runs'
    answers 200 '/sql?q=WITH+RECURSIVE+n(i)+AS+(SELECT+1+UNION+ALL+SELECT+i%2B1+FROM+n)+SELECT+i+FROM+n'
    grep -q 'more than 1000 rows' "$WORK/body"
    same 3 "$(q 'SELECT count(*) AS n FROM runs')"
}

wrong_requests() {
    local target
    for target in /nothing /runs/9 /runs/0 /runs/01 /runs/-1 /runs/1/ /runs/99999999999999999999 /compare/1/9 \
        /api/v1/runs/9/top /../etc/passwd /assets/../serve.js; do
        answers 404 "$target"
    done
    for target in '/runs/1?sort=x' '/runs/1?x=1' '/?q=%' '/?q=%zz' '/?q=a%00b' '/?page=-1' '/compare?run=1' '/compare' \
        '/compare?run=1&run=2&run=3' '/api/v1/runs/1/top?limit=0' '/api/v1/runs/1/top?limit=100001' \
        '/api/v1/runs/1/top?sort=p50' /runs/1/function '/runs/1/function?q=none' \
        '/runs/1/timeline?from=2&to=1' '/runs/1/timeline?from=-1' '/runs/1/timeline?to=99999999999999999999'; do
        answers 400 "$target"
    done
    answers 405 / POST
    answers 405 / DELETE
    answers 200 / HEAD
    same 0 "$(wc -c <"$WORK/body")"
    answers 404 /api/v1/runs/9/top
    json_get error <"$WORK/body" | grep -q 'no such run'
    answers 431 "/?q=$(printf '%040000d' 0)" || answers 414 "/?q=$(printf '%040000d' 0)"
}

headers() {
    answers 200 /
    grep -qi "^Content-Security-Policy: default-src 'none';.*script-src 'self'; style-src 'self'$" "$WORK/head"
    grep -qi '^X-Content-Type-Options: nosniff$' "$WORK/head"
    lacks -iE 'https?://|<script>|style="' "$WORK/body"
}

hosts() {
    answers 421 / GET 'Host: evil.example'
    answers 421 / GET 'Host: evil.example:7447'
    answers 421 / GET 'Host: 127.0.0.1.evil.example'
    answers 421 / GET 'Host: [::1'
    answers 200 / GET 'Host: localhost:7447'
    answers 200 / GET 'Host: [::1]:7447'
    answers 403 '/sql?q=SELECT+1' GET 'Sec-Fetch-Site: cross-site' 'Sec-Fetch-Mode: no-cors'
}

# One of them, as an address has it.
hostile_function() {
    q "SELECT name FROM call_counts WHERE run_id = 3 AND name LIKE '%<b a=%' LIMIT 1" |
        python3 -c 'import sys, urllib.parse; print(urllib.parse.quote(sys.stdin.buffer.read().rstrip(b"\n"), safe=""))'
}

# The names are those of the program hostile_names; the page shows them, and has no element or script of theirs.
hostile() {
    local target
    for target in /runs/3 "/runs/3/function?q=$(hostile_function)" /compare/1/3 /runs/3/timeline /runs/3/loops '/sql?q=SELECT+name+FROM+functions' /runs/3/flame.svg /live /; do
        answers 200 "$target"
        lacks -aE "<b a=|$(printf '\033')" "$WORK/body"
        "$E2E/serve_ask" utf8 "$WORK/body"
    done
    answers 200 /runs/3
    grep -q '&lt;b a=' "$WORK/body"
}

while_recording() {
    spawn "$PROGRAMS/hostile_names" 60 >"$WORK/ready"
    local target=$spawned
    wait_until 60 grep -q ready "$WORK/ready"
    spawn "$TRACECTL" -q record -n live -p "$target"
    local recorder=$spawned
    wait_until 60 "$E2E/serve_ask" contains "$URL/live" 'Being recorded'
    for _ in 1 2 3 4 5; do
        answers 200 /
        answers 200 /runs/4
        answers 200 /api/v1/runs/4/top
    done
    grep -q '"complete"' "$WORK/body"
    kill -INT "$recorder"
    wait "$recorder"
    kill "$target"
    wait_until 60 "$E2E/serve_ask" contains "$URL/live" 'Nothing is being recorded'
}

# A thousand clients that send nothing, or half a request: others are answered.
idle() {
    "$E2E/serve_ask" idle "$URL" 1000
}

events() {
    "$E2E/serve_ask" events "$URL" "$TRACECTL" -q import --format chrome -n imported "$WORK/chrome.json"
}

with_token() {
    answers 401 /
    answers 401 /api/v1/runs GET 'Authorization: Bearer 0123456789abcdef-toke'
    answers 401 /api/v1/runs GET 'Authorization: Bearer 0123456789abcdef-tokenx'
    answers 401 /api/v1/runs GET 'Authorization: Bearer '
    answers 401 /assets/style.css
    answers 200 /api/v1/runs GET "Authorization: Bearer $TOKEN"
    answers 200 / GET "Authorization: Basic $(printf 'me:%s' "$TOKEN" | base64 -w 0)"
    answers 401 / GET "Authorization: Basic $(printf 'me:x%s' "$TOKEN" | base64 -w 0)"
}

not_started() {
    fails_with 3 "$TRACECTL" serve --listen 0.0.0.0:0
    fails_with 3 "$TRACECTL" serve --listen nonsense
    fails_with 3 "$TRACECTL" -d "$WORK/none.db" serve --listen 127.0.0.1:0
    echo short >"$WORK/short"
    fails_with 3 "$TRACECTL" serve --listen 127.0.0.1:0 --token-file "$WORK/short"
    fails_with 3 "$TRACECTL" serve --listen "${URL#http://}"
}

# Ends at once, with status 0, also while a stream of events is open and an answer is being made.
ends() {
    "$E2E/serve_ask" open "$URL" '/events' '/sql?q=WITH+RECURSIVE+n(i)+AS+(SELECT+1+UNION+ALL+SELECT+i%2B1+FROM+n)+SELECT+max(i)+FROM+n' &
    local client=$!
    wait_until 60 is_asked
    kill -TERM "$server"
    wait "$client"
    wait_until 60 has_ended
}

is_asked() {
    local child
    while read -r child; do
        grep -q RECURSIVE "/proc/$child/cmdline" && return 0
    done < <(cat "/proc/$server/task/"*/children | tr ' ' '\n')
    return 1
}

has_ended() {
    ! lives "$server"
}

in_a_browser() {
    timeout -k 5 150 "$E2E/serve_browser" "$URL" "$WORK/profile" / /runs/1 '/runs/1/function?q=row' /runs/1/timeline /runs/3 /compare/1/2 /live '/sql?q=SELECT+1+AS+one' \
        /runs/1/loops /runs/1/flame.svg /compare/1/2/flame.svg /runs/1/report /nothing
}

record good -- "$PROGRAMS/million" 20 >/dev/null
record bad -- "$PROGRAMS/million" 30 >/dev/null
record BYTES -- "$PROGRAMS/hostile_names" >/dev/null
"$E2E/printable" chrome >"$WORK/chrome.json"
serve
run_case "every page is there" pages
# Of inferred returns the time line has no durations, of recorded ones it has.
times_that_are_known() {
    local inferred="$WORK/inferred.db" exact="$WORK/exact.db"
    "$TRACECTL" -q -d "$inferred" record --time full -- "$PROGRAMS/forty" >/dev/null
    "$TRACECTL" -q -d "$exact" record --time full --returns exact -- "$PROGRAMS/forty" >/dev/null
    "$TRACECTL" -d "$inferred" serve --print /runs/1/timeline >"$WORK/body"
    grep -q 'title>main, time not known exactly' "$WORK/body"
    lacks ', about ' "$WORK/body"
    "$TRACECTL" -d "$exact" serve --print /runs/1/timeline >"$WORK/body"
    grep -q ', about [0-9.]* [num]*s<' "$WORK/body"
}

run_case "the API says what the command line says" same_as_command_line
run_case "the time line shows no time that is not known" times_that_are_known
run_case "metrics" metrics
run_case "SQL only reads, and not without end" sql
run_case "wrong requests are refused" wrong_requests
run_case "headers that keep scripts out" headers
run_case "hosts that are not this one" hosts
run_case "hostile names are text" hostile
run_case "a thousand idle connections" idle
run_case "events of the store" events
if command -v chromium >/dev/null || [[ ${CI:-} == true ]]; then
    run_case "in a browser, in both themes and on a small screen" in_a_browser
else
    echo "ok - in a browser # SKIP chromium is not installed"
fi
run_case "a store that is being written" while_recording
run_case "what must not be served is not" not_started
run_case "it ends when it is asked to" ends
echo "$TOKEN" >"$WORK/token"
serve --token-file "$WORK/token"
run_case "a token is asked for" with_token
finish
