#!/usr/bin/env bash
# install_test.sh SOURCE BUILD: what `cmake --install` lays out answers alone, without the tree that it was built in.
source "$(dirname "$0")/check.sh"
source_tree=$1 build=$2
prefix=$scratch/prefix
cmake --install "$build" --prefix "$prefix" >"$scratch/log" || fail "$(cat "$scratch/log")"

for file in bin/zeroplan share/man/man1/zeroplan.1 share/bash-completion/completions/zeroplan \
  share/fish/vendor_completions.d/zeroplan.fish share/zeroplan/schemas/fit.json share/doc/zeroplan/copyright; do
  [ -s "$prefix/$file" ] || fail "$file was not installed"
done
[ -n "$(find "$prefix/share/zsh" -name _zeroplan -size +0)" ] || fail "no completion of zsh"
if command -v man >/dev/null; then
  has "$(MANPATH=$prefix/share/man man --where zeroplan)" "$prefix/share/man/man1/zeroplan.1"
fi

# An empty file system over the source and the build, where that may be mounted.
answer='cd / && for tree in "$2" "$3"; do [ -z "$4" ] || [ ! -d "$tree" ] || mount -t tmpfs none "$tree" || exit 5; done
  ls "$2/CMakeLists.txt" >&2; "$1/bin/zeroplan" fit llama3-8b --gpus 8xH100-80GB --quiet'
hide=(unshare --mount)
hidden=yes
"${hide[@]}" mount -t tmpfs none "$scratch" 2>/dev/null || { hide=() hidden=; echo "not hidden: mounting is not permitted"; }
text=$(env -i PATH="$PATH" "${hide[@]}" bash -c "$answer" - "$prefix" "$source_tree" "$build" "$hidden" 2>"$scratch/errors") ||
  fail "exit $?: $(cat "$scratch/errors")"
has "$text" "fits: the worst stage"
[ -z "$hidden" ] || has "$(cat "$scratch/errors")" "No such file"
echo "$text"
