#!/usr/bin/env bash
# completions_test.sh SHELL BINARY: the shell itself completes commands, options, values and names, and every option
# that --help has.
source "$(dirname "$0")/check.sh"
shell=$1
tests=$(cd "$(dirname "$0")" && pwd)
export PATH=$(dirname "$2"):$PATH
command -v "$shell" >/dev/null || skip "no $shell"
zeroplan completions "$shell" >"$scratch/script"
cd "$scratch" # where a file to be completed lies
touch plan.json

# candidates WORD...: what the shell offers for the last word, one a line.
candidates_bash() {
  bash --norc -c 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _zeroplan
    printf "%s\n" "${COMPREPLY[@]}"' "$scratch/script" "$@"
}
candidates_fish() {
  HOME=$scratch fish --no-config -c 'source $argv[1]; complete -C (string join " " -- $argv[2..-1])' "$scratch/script" "$@" | cut -f 1
}
# zsh completes at a terminal alone: one of its own.
candidates_zsh() { zsh -f "$tests/zsh_candidates.zsh" "$scratch/script" "$*"; }
candidates() { "candidates_$shell" "$@"; }

has "$(candidates zeroplan "")" fit sweep explain timeline compare export import presets validate probe help
has "$(candidates zeroplan fit --sch)" --schedule
has "$(candidates zeroplan fit llama3-8b --schedule "")" gpipe 1f1b interleaved dualpipe
has "$(candidates zeroplan sweep --color "")" auto always never
has "$(candidates zeroplan fit llama3.1-4)" llama3.1-405b
has "$(candidates zeroplan fit llama3-8b --gpus 64xH10)" 64xH100-80GB
has "$(candidates zeroplan presets "")" models gpus clusters runtimes
has "$(candidates zeroplan presets gpus A100)" A100-40GB A100-80GB
has "$(candidates zeroplan help time)" timeline

# Of one command, all: neither more nor less.
[ "$shell" = zsh ] && commands=sweep || commands="fit sweep explain timeline compare export import presets validate probe"
for command in $commands; do
  known=$(zeroplan "$command" --help | grep -oE '^  (-h,)?--[a-z-]+' | grep -oE -- '--.*' | sort)
  offered=$(candidates zeroplan "$command" -- | grep -oE -- '--[a-z-]+' | sort)
  [ "$known" = "$offered" ] || fail "$command: $(diff <(echo "$known") <(echo "$offered"))"
done
echo "$shell completes"
