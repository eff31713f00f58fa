# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion of tracectl for fish: put it into /usr/share/fish/vendor_completions.d/tracectl.fish.

function __tracectl_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    for line in ($words[1] __complete $words[2..] "$word" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path $word
            case ':commands'
                __fish_complete_subcommand --fcs-skip=(contains -i -- -- $words)
            case '*'
                echo $line
        end
    end
end

complete -c tracectl -f -a '(__tracectl_complete)'
