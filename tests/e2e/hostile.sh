#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Names that a traced program chose do nothing to a terminal and break no format, whichever command prints them.
. "$(dirname "$0")/lib.sh"
needs_capture

# What to run of each command, a line for each form of its output: "FORM ARGUMENT...". Runs are NORMAL and FAULTY, and
# BYTES of a program with names that are no UTF-8. A command of `tracectl --help` that is not here is a failure.
forms() { # command
    local run
    case $1 in
    runs | verify) printf '%s\n' text 'json --json' ;;
    query | sql)
        for run in functions threads runs processes; do
            printf "%s SELECT*FROM\"$run\"\n" text 'json --json'
            [[ $1 == sql ]] || echo "csv --csv SELECT*FROM\"$run\""
        done
        ;;
    show | calls | top | nlr | jsm | cluster | lattice | stat)
        printf '%s\n' 'text NORMAL' 'text BYTES' 'json --json NORMAL' 'json --json BYTES'
        case $1 in
        calls) printf '%s\n' 'text --raw NORMAL' 'text --raw BYTES' ;;
        jsm) echo 'csv --csv NORMAL' ;;
        lattice) printf '%s\n' 'text --full NORMAL' 'text --dot --full NORMAL' 'text --dot BYTES' ;;
        esac
        ;;
    slow) printf '%s\n' $'text NORMAL back\rFORGED' $'json --json NORMAL back\rFORGED' 'text BYTES main' 'json --json BYTES main' ;;
    diff) printf '%s\n' 'text NORMAL FAULTY' 'text --full NORMAL BYTES' 'json --json NORMAL FAULTY' 'json --json BYTES FAULTY' ;;
    rank) printf '%s\n' 'text NORMAL FAULTY' 'json --json NORMAL FAULTY' ;;
    report) printf '%s\n' 'html -o - NORMAL' 'html -o - NORMAL FAULTY' 'html -o - BYTES' ;;
    serve)
        printf '%s\n' 'html --print=/' 'html --print=/live' 'html --print=/sql?q=SELECT*FROM+functions' \
            'html --print=/compare/1/2' 'html --print=/runs/1' 'html --print=/runs/1/loops' 'json --print=/api/v1/runs'
        ;;
    export)
        for run in NORMAL BYTES; do
            printf "%s $run\n" 'json --format=chrome' 'csv --format=csv' 'text --format=folded' 'text --format=dot' \
                'json --format=json'
        done
        ;;
    # These need events of other kinds, which no name can be in.
    locks) printf '%s\n' 'error NORMAL' 'error BYTES' ;;
    cascade) echo 'error --sink=main NORMAL' ;;
    go) printf '%s\n' 'error tree NORMAL' 'error timeline NORMAL' 'error coverage NORMAL' 'error locks BYTES' ;;
    # Their output has no names of a run; record, stat -p and top -p are below.
    record | daemon | rm | gc | import | recover | doctor | fleet | ship | pull | merge) ;;
    *) fail "this test does not know the command '$1'" ;;
    esac
}

# Runs a command and leaves its output for check.
print() { # form, command, arguments...
    local form=$1 status=0 out
    shift
    printed=$((printed + 1))
    out=$WORK/out/${form/error/text}.1$printed
    echo "$*" >"$out.why"
    if [[ $1 == sql ]]; then # which reads its statements
        echo "${*: -1};" >"$WORK/in"
        set -- "${@:1:$#-1}"
    fi
    if [[ $form == terminal ]]; then
        env -u NO_COLOR PAGER=cat "$E2E/terminal" "$TRACECTL" "$@" <<<end >"$out" || status=$?
    elif [[ $form == error ]]; then
        fails_with 3 "$TRACECTL" "$@" >"$out"
    else
        "$TRACECTL" "$@" >"$out" <"$WORK/in" || status=$?
    fi
    ((status <= 1)) || fail "status $status: $*"
}

check() { # whether the printed is printable
    "$E2E/printable" "$WORK/out"
}

all_forms_of() { # command
    local form arguments lines
    lines=$(forms "$1")
    while read -r form arguments; do
        # shellcheck disable=SC2086 # words
        [[ -z $form ]] || print "$form" "$1" ${arguments}
    done <<<"$lines"
    check
}

on_a_terminal() {
    local command
    for command in runs 'show NORMAL' 'calls NORMAL' 'calls BYTES' 'nlr NORMAL' 'lattice NORMAL' 'top BYTES' \
        'diff --full NORMAL FAULTY' 'cluster NORMAL'; do
        # shellcheck disable=SC2086 # words
        print terminal $command
    done
    check
}

while_recording() { # what record says itself; the run's name, its tags and its command are hostile, too
    local name=$'\e[31mname'
    "$TRACECTL" record -n "$name" --tag $'\e[2J=\e[3J' -- "$PROGRAMS/hostile_names" $'\e[1mARG\xff\nFORGED' \
        >"$WORK/ready" 2>"$WORK/out/text.0"
    echo record >"$WORK/out/text.0.why"
    print text show "$name"
    print json show --json "$name"
    print text record --dry-run -- "$PROGRAMS/hostile_names"
    print json record --dry-run --json -- "$PROGRAMS/hostile_names"
    print error record -- $'./no\e[31msuch'
    check
    "$TRACECTL" query "SELECT name FROM functions" | grep -F '\x1b[31mred'
}

of_what_runs() {
    spawn "$PROGRAMS/hostile_names" 30 >"$WORK/ready"
    local pid=$spawned
    wait_until 10 grep -q ready "$WORK/ready"
    print text stat --stacks -p "$pid"
    print json stat --json -p "$pid"
    print text top --batch --iterations=1 -p "$pid"
    print lines top --json --batch --iterations=1 -p "$pid"
    kill "$pid"
    check
}

touch "$WORK/in"
mkdir "$WORK/out"
printed=0
"$E2E/printable" chrome >"$WORK/normal.json"
"$E2E/printable" chrome $'only\nFORGED\e[0m' 'only' >"$WORK/faulty.json"
"$TRACECTL" -q import --format chrome -n NORMAL "$WORK/normal.json"
"$TRACECTL" -q import --format chrome -n FAULTY "$WORK/faulty.json"
record BYTES -- "$PROGRAMS/hostile_names" >"$WORK/ready"
for command in $("$TRACECTL" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    run_case "$command prints names that break nothing" all_forms_of "$command"
done
run_case "on a terminal nothing but colours" on_a_terminal
run_case "what record says of names" while_recording
run_case "names of what runs" of_what_runs
finish
