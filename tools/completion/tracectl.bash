# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# Completion of tracectl for bash: put it into /usr/share/bash-completion/completions/tracectl, or source it.

_tracectl() {
    local word=${COMP_WORDS[COMP_CWORD]} line
    local -a words=()
    local i

    # Bash splits "--backend=auto" into three words; tracectl wants one.
    for ((i = 1; i <= COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == = && ${#words[@]} -gt 0 && ${words[-1]} == --* ]]; then
            words[-1]+='='
            [[ $i -eq $COMP_CWORD ]] && word=
        elif ((${#words[@]})) && [[ ${words[-1]} == --*= ]]; then
            words[-1]+=${COMP_WORDS[i]}
        else
            words+=("${COMP_WORDS[i]}")
        fi
    done
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :files) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word") && compopt -o filenames 2>/dev/null ;;
        :commands) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -c -- "$word"; compgen -f -- "$word") ;;
        *)
            line=${line%%$'\t'*}
            # The part before = is on the command line already.
            [[ ${words[-1]} == --*=* ]] && line=${line#*=}
            [[ $line == *= ]] && compopt -o nospace 2>/dev/null
            COMPREPLY+=("$line")
            ;;
        esac
    done < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null)
}

complete -F _tracectl tracectl
