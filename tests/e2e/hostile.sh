#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Names that a traced program chose do nothing to a terminal and break no format, whichever command prints them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/go_lib.sh"
needs_capture

# What to run of each command, a line for each form of its output: "FORM ARGUMENT...". Runs are NORMAL and FAULTY, and
# BYTES and TIMED, with the times of calls, of a program with names that are no UTF-8. A command of `tracectl --help` that is not here is a failure.
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
        printf '%s\n' 'text NORMAL' 'text BYTES' 'text TIMED' 'json --json NORMAL' 'json --json BYTES' 'json --json TIMED'
        case $1 in
        calls) printf '%s\n' 'text --raw NORMAL' 'text --raw BYTES' ;;
        jsm) echo 'csv --csv NORMAL' ;;
        lattice) printf '%s\n' 'text --full NORMAL' 'text --dot --full NORMAL' 'text --dot BYTES' ;;
        esac
        ;;
    slow) printf '%s\n' $'text NORMAL back\rFORGED' $'json --json NORMAL back\rFORGED' 'text BYTES main' 'json --json BYTES main' ;;
    diff)
        printf '%s\n' 'text NORMAL FAULTY' 'text --full NORMAL BYTES' 'json --json NORMAL FAULTY' 'json --json BYTES FAULTY' \
            'text --functions --full NORMAL FAULTY' 'text --functions BYTES TIMED' 'json --json --functions BYTES TIMED'
        ;;
    rank) printf '%s\n' 'text NORMAL FAULTY' 'json --json NORMAL FAULTY' ;;
    report) printf '%s\n' 'html -o - NORMAL' 'html -o - NORMAL FAULTY' 'html -o - BYTES' ;;
    serve)
        printf '%s\n' 'html --print=/' 'html --print=/live' 'html --print=/sql?q=SELECT*FROM+functions' \
            'html --print=/compare/1/2' 'html --print=/runs/1' 'html --print=/runs/1/loops' 'json --print=/api/v1/runs' \
            'html --print=/runs/4' 'html --print=/compare/3/4' 'json --print=/api/v1/runs/4/top' \
            'json --print=/api/v1/compare/3/4' 'text --print=/metrics'
        ;;
    export)
        for run in NORMAL BYTES TIMED; do
            printf "%s $run\n" 'json --format=chrome' 'csv --format=csv' 'text --format=folded' 'text --format=dot' \
                'json --format=json' 'xml --format=flamegraph' 'xml --format=flamegraph --weight=time' \
                'json --format=speedscope' 'text --format=callgrind'
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

pictures() { # in files of their own
    "$TRACECTL" -q diff BYTES TIMED --svg "$WORK/out/xml.columns" --flamegraph "$WORK/out/xml.flames" >"$WORK/unused" || true
    "$TRACECTL" -q stat BYTES --svg "$WORK/out/xml.stacks" >"$WORK/unused"
    for picture in columns flames stacks; do
        echo "$picture" >"$WORK/out/xml.$picture.why"
    done
    check
}

from_a_folder() { # whose name, and the program's, would do something; what all that runs says of them
    local program=$WORK/$'d\e[31mir\nFORGED/p\e]0;x\a\nFORGED\xff' how
    mkdir "${program%/p*}"
    cp "$PROGRAMS/hostile_names" "$program"
    for how in '' '--backend uprobe --images all' '--life-cycle ptrace' '--sync' '--flight 1m --flight-on end'; do
        # shellcheck disable=SC2086 # words
        "$TRACECTL" -v -v record -n folder $how -- "$program" >"$WORK/ready" 2>"$WORK/out/text.said"
        echo "record -v -v $how" >"$WORK/out/text.said.why"
        check
        print text -v show folder
    done
    print text -v record --dry-run -- "$program"
    check
    of_the_daemon "$program"
}

of_the_daemon() { # program
    printf '%s\n' '[daemon]' "store = $WORK/d.db" "socket = $WORK/d.socket" '[target a]' 'name = *FORGED*' >"$WORK/d.conf"
    spawn "$1" 60 >"$WORK/ready"
    wait_until 10 grep -q ready "$WORK/ready"
    spawn "$TRACECTL" -v daemon -c "$WORK/d.conf" 2>"$WORK/out/text.log"
    echo 'log of the daemon' >"$WORK/out/text.log.why"
    wait_until 30 grep -q event=begun "$WORK/out/text.log"
    print text daemon --status -c "$WORK/d.conf"
    grep -q '/p\\x1b]0;x\\x07\\nFORGED' "$WORK/out/text.1$printed"
    print json daemon --status --json -c "$WORK/d.conf"
    print text daemon --metrics -c "$WORK/d.conf"
    print text daemon --check -c "$WORK/d.conf"
    kill -TERM "$spawned"
    wait "$spawned" || true
    check
}

of_go() { # version
    local form
    mkdir "$WORK/go"
    cp "$ROOT"/tests/programs/go/hostile/* "$WORK/go"
    sed -i $'s/linkname send NAME/linkname send na\e[31mme.b\aad\u009b/; s/FILE.go:/\e[31mFORG\aED\u202e.go:/' "$WORK/go/main.go"
    (cd "$WORK/go" && go_run "$1" build -o "$WORK"/$'g\e[31mo' .)
    print text go check -v -- "$WORK"/$'g\e[31mo'
    "$TRACECTL" query 'SELECT name FROM functions' | grep -F 'na\x1b[31mme.b'
    for form in text 'json --json'; do
        # shellcheck disable=SC2086 # words
        set -- $form
        print "$@" go explore --runs 2 -- "$WORK"/$'g\e[31mo'
        for view in tree timeline coverage locks; do
            print "$@" go "$view" latest
        done
        print "$@" go model "$WORK"/$'g\e[31mo'
        print "$@" go layout "$WORK"/$'g\e[31mo'
    done
    print html report -o - latest
    check
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
record TIMED --time full -- "$PROGRAMS/hostile_names" >"$WORK/ready"
for command in $("$TRACECTL" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    run_case "$command prints names that break nothing" all_forms_of "$command"
done
run_case "on a terminal nothing but colours" on_a_terminal
run_case "what record says of names" while_recording
run_case "names of what runs" of_what_runs
run_case "pictures in files" pictures
run_case "names of files and folders, in messages and the daemon's log" from_a_folder
if [[ -x /usr/lib/go-1.22/bin/go ]]; then
    run_case "names in Go programs" of_go 1.22
fi
finish
