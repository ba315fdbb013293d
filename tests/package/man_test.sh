#!/usr/bin/env bash
# man_test.sh BINARY: the page is set without a warning and has every command and every option of --help.
source "$(dirname "$0")/check.sh"
binary=$1
command -v man >/dev/null && command -v groff >/dev/null || skip "no man, or no groff"
"$binary" completions man >"$scratch/zeroplan.1"
page=$(MANWIDTH=80 LC_ALL=C.UTF-8 man --warnings --encoding=UTF-8 --local-file "$scratch/zeroplan.1" 2>"$scratch/warnings")
[ ! -s "$scratch/warnings" ] || fail "$(head -5 "$scratch/warnings")"
has "$(lexgrog "$scratch/zeroplan.1")" "zeroplan - plan memory"
page=$(echo "$page" | col -b)
for command in $("$binary" --help | sed -n '/^Subcommands/,$s/^  \([a-z]*\) .*/\1/p'); do
  has "$page" "zeroplan $command"
  for option in $("$binary" "$command" --help | grep -oE '^  (-h,)?--[a-z-]+' | grep -oE -- '--.*'); do
    grep -qE -- "^ +(-[a-zA-Z], )?$option( |$)" <<<"$page" || fail "no $option of $command"
  done
done
has "$page" "EXIT STATUS" NO_COLOR "--sequence-parallel VALUE"
echo "$(wc -l <<<"$page") lines"
