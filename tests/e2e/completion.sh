#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion of command lines: what `tracectl __complete` answers, and that bash, zsh and fish offer it.
. "$(dirname "$0")/lib.sh"

SCRIPTS=$ROOT/tools/completion
export PATH=$WORK/bin:$PATH
mkdir "$WORK/bin"
ln -s "$TRACECTL" "$WORK/bin/tracectl"
cd "$WORK" || exit
mkdir folder_of_traces
printf 'MPI_Init\n' >folder_of_traces/0.0.u16
printf 'L\0' >folder_of_traces/0.0.u16
printf '76 main\n' >folder_of_traces/.info
"$TRACECTL" -q import --format u16 folder_of_traces -n before_the_change
"$TRACECTL" -q import --format u16 folder_of_traces -n after_the_change
touch a_file_of_mine.conf

words() { # words of a command line...
    "$TRACECTL" __complete "$@" | cut -f 1 | paste -sd ' '
}

answers() {
    same "record recover" "$(words rec)"
    same "check coverage" "$(words go c)"
    same "check coverage" "$(words -d "$STORE" -q go c)"
    same "--backend=" "$(words record --back)"
    same "auto inline uprobe" "$(words record --backend '')"
    same "--backend=auto" "$(words record --backend=a)"
    same "main all" "$(words record --images '')"
    same "latest after_the_change before_the_change" "$(words show '')"
    same "before_the_change" "$(words diff latest bef)"
    same "latest" "$(words -d "$WORK/no_such.db" show '')"
    same "latest" "$(words show -d "$WORK/no_such.db" '')"
    [[ ! -e $WORK/no_such.db ]] || fail "a store was made"
    same ":files" "$(words go model '')"
    same ":files" "$(words daemon -c '')"
    same ":files" "$(words daemon -vc '')"
    same ":commands" "$(words record -n name -- '')"
    same "" "$(words no-such-command '')"
    same "" "$(words record -n '')"
    same $'check\treport leaks and deadlocks of goroutines' "$("$TRACECTL" __complete go che)"
}

# Every command and every long option of --help is offered, and nothing else.
as_in_help() {
    local command
    same "$("$TRACECTL" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')" "$("$TRACECTL" __complete '' | cut -f 1)"
    for command in $("$TRACECTL" __complete '' | cut -f 1); do
        same "$("$TRACECTL" "$command" --help | sed -nE 's/^ +(-., +)?(--[a-z-]+).*/\2/p' |
            grep -vxE -- '--(help|usage|version)' | sort -u)" \
            "$("$TRACECTL" __complete "$command" -- | sed -E 's/[=\t].*//' | sort)"
    done
}

processes() {
    ln -s "$(readlink -f "$(command -v sleep)")" "$WORK/bin/link_to_sleep"
    cp "$(readlink -f "$(command -v sleep)")" "$WORK/bin/a_copy_of_sleep_$$"
    spawn "$WORK/bin/a_copy_of_sleep_$$" 300
    wait_until 10 grep -q "^a_copy" "/proc/$spawned/comm"
    same "a_copy_of_sleep_$$" "$(words stat -p a_copy_of_sleep_)"
}

in_bash() { # words...
    # shellcheck disable=SC2016 # the inner shell's
    bash --norc -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tracectl; echo "${COMPREPLY[*]}"' \
        bash "$SCRIPTS/tracectl.bash" "$@"
}

bash_offers() {
    same "record recover" "$(in_bash tracectl rec)"
    # Bash makes three words of it.
    same "inline" "$(in_bash tracectl record --backend = inl)"
    same "auto inline uprobe" "$(in_bash tracectl record --backend =)"
    same "--backend=" "$(in_bash tracectl record --backe)"
    same "a_file_of_mine.conf" "$(in_bash tracectl daemon -c a_file)"
    same "before_the_change" "$(in_bash tracectl show bef)"
    [[ $(in_bash tracectl record -- mkfif) == mkfifo* ]]
}

fish_offers() {
    local line
    mkdir -p "$WORK/fish"
    while IFS='>' read -r line wanted; do
        same "$wanted" "$(HOME=$WORK/fish fish --no-config -c "source $SCRIPTS/tracectl.fish; complete -C '$line'" |
            cut -f 1 | sort | paste -sd ' ')"
    done <<'END'
tracectl rec>record recover
tracectl record --backend=in>--backend=inline
tracectl show bef>before_the_change
tracectl daemon -c a_fi>a_file_of_mine.conf
END
    [[ $(HOME=$WORK/fish fish --no-config -c "source $SCRIPTS/tracectl.fish; complete -C 'tracectl record -- mkfif'") == mkfifo* ]]
}

# A real zsh on a terminal: each line ends in TAB, which completes what has one continuation.
zsh_offers() {
    cat >"$WORK/zshrc" <<END
PS1='ready> '
unsetopt beep
unset zle_bracketed_paste
zle_highlight=(none)
fpath=($SCRIPTS \$fpath)
autoload -Uz compinit
compinit -u -D
END
    ZDOTDIR=$WORK HOME=$WORK zsh -f -c 'cp zshrc .zshrc'
    ZDOTDIR=$WORK HOME=$WORK "$E2E/terminal" zsh -d -i <<'END' >"$WORK/zsh.out"
prompt ready> 
send tracectl recor\t
expect tracectl recor
expect d 
send --backe\t
expect --backe
expect nd=
send in\t
expect in
expect line
send \x15
send tracectl show bef\t
expect tracectl show bef
expect ore_the_change
send \x15
send tracectl daemon -c a_fi\t
expect daemon -c a_fi
expect le_of_mine.conf
send \x15
send exit\r
end
END
}

run_case "answers of tracectl" answers
run_case "all commands and options of --help" as_in_help
run_case "names of running processes" processes
run_case "bash" bash_offers
run_case "zsh" zsh_offers
run_case "fish" fish_offers
finish
