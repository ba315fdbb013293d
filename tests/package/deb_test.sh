#!/usr/bin/env bash
# deb_test.sh FILE.deb: dpkg installs it into an empty root, where it answers, and removes it without a trace.
source "$(dirname "$0")/check.sh"
package=$1
dpkg-deb --info "$package"
[ "$(id -u)" -eq 0 ] || skip "dpkg installs as root alone"
root=$scratch/root
mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers}
touch "$root/var/lib/dpkg/status"
files() { (cd "$root" && find . -not -path './var/lib/dpkg*' -not -path ./var -not -path ./var/lib -not -path . | sort); }
quiet() { "$@" >"$scratch/log" 2>&1 || fail "$*: $(cat "$scratch/log")"; }

quiet dpkg --root="$root" --log=/dev/null --install "$package"
has "$(dpkg --root="$root" --status zeroplan)" "Status: install ok installed"
has "$(files)" ./usr/bin/zeroplan ./usr/share/man/man1/zeroplan.1 ./usr/share/zsh/vendor-completions/_zeroplan \
  ./usr/share/doc/zeroplan/copyright
has "$(env -i "$(command -v chroot)" "$root" /usr/bin/zeroplan fit llama3-8b --gpus 8xH100-80GB --quiet)" "fits: the worst stage"
quiet dpkg --root="$root" --log=/dev/null --purge zeroplan
[ -z "$(files | grep -v '^\./usr$')" ] || fail "left behind: $(files)"
echo "installed, answered, removed"
