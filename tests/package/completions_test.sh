#!/usr/bin/env bash
# completions_test.sh SHELL BINARY: the shell itself completes commands, options, values and names, and offers every
# option that --help has, and no other.
source "$(dirname "$0")/check.sh"
shell=$1
tests=$(cd "$(dirname "$0")" && pwd)
export PATH=$(dirname "$2"):$PATH
command -v "$shell" >/dev/null || skip "no $shell"
zeroplan completions "$shell" >"$scratch/script"
cd "$scratch"

# offers_SHELL LINE...: LINE, a tab and a candidate for its last word, a line each.
offers_bash() {
  local line words
  for line; do
    IFS=' ' read -ra words <<<"$line"
    [[ $line != *' ' ]] || words+=("")
    bash --norc -c 'source ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _zeroplan
      for word in "${COMPREPLY[@]}"; do printf "%s\t%s\n" "$0" "$word"; done' "$line" "${words[@]}"
  done
}
offers_fish() {
  HOME=$scratch fish --no-config -c 'source ./script
    for line in $argv; printf "$line\t%s\n" (complete -C $line | string split -f 1 \t); end' "$@"
}
offers_zsh() { zsh -f "$tests/zsh_offers.zsh" ./script "$@"; } # at a terminal of its own

commands=$(zeroplan --help | sed -n '/^Subcommands/,$s/^  \([a-z]*\) .*/\1/p')
count=64x
[ "$shell" != zsh ] || count= # zsh keeps what is before the name
declare -A expected=(
  ["zeroplan "]="$(echo $commands) help"
  ["zeroplan fit --sch"]=--schedule
  ["zeroplan fit llama3-8b --schedule "]="gpipe 1f1b interleaved zb-h1 zb-h2 zb-v dualpipe"
  ["zeroplan sweep --color "]="auto always never"
  ["zeroplan fit llama3.1-4"]=llama3.1-405b
  ["zeroplan fit llama3-8b --gpus 64xH10"]="${count}H100-80GB"
  ["zeroplan presets "]="models gpus clusters runtimes"
  ["zeroplan presets gpus A100"]="A100-40GB A100-80GB"
  ["zeroplan help time"]=timeline
)
lines=("${!expected[@]}")
for command in $commands; do lines+=("zeroplan $command --"); done
"offers_$shell" "${lines[@]}" >offers

for line in "${!expected[@]}"; do
  for word in ${expected[$line]}; do
    grep -qxF "$line"$'\t'"$word" offers || fail "no $word after '$line': $(grep -F "$line"$'\t' offers)"
  done
done
for command in $commands; do
  known=$(zeroplan "$command" --help | grep -oE '^  (-h,)?--[a-z-]+' | grep -oE -- '--.*' | sort)
  offered=$(grep -F "zeroplan $command --"$'\t' offers | cut -f 2 | grep -oE -- '^--[a-z-]+' | sort -u)
  [ "$known" = "$offered" ] || fail "$command: $(diff <(echo "$known") <(echo "$offered"))"
done
echo "$shell: ${#lines[@]} lines, $(wc -l <offers) candidates"
