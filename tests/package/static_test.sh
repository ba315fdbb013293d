#!/usr/bin/env bash
# static_test.sh BINARY: one file of at most 10 MiB that needs no other, starts in 3 ms, and answers in an empty root.
source "$(dirname "$0")/check.sh"
binary=$1
size=$(stat -c %s "$binary")
[ "$size" -le $((10 << 20)) ] || fail "$size bytes"
! readelf -d "$binary" | grep NEEDED || fail "it needs a shared library"

# The fastest of 200, since other programs run too.
best=999999999
for _ in {1..200}; do
  before=${EPOCHREALTIME/[.,]/}
  "$binary" --version >/dev/null
  took=$((${EPOCHREALTIME/[.,]/} - before))
  [ "$took" -ge "$best" ] || best=$took
done
echo "$size bytes; starts in $best us, the shell's fork included"
[ "$best" -le 3000 ] || fail "starts in $best us"

mkdir "$scratch/root"
cp "$binary" "$scratch/root/zeroplan"
[ "$(id -u)" -eq 0 ] && chroot "$scratch/root" /zeroplan --version >/dev/null 2>&1 || skip "chroot is not permitted; no answer in an empty root was asked for"
text=$(env -i "$(command -v chroot)" "$scratch/root" /zeroplan fit qwen2.5-72b --gpus 128xA100-80GB --quiet) || fail "fit: exit $?"
has "$text" "fits: the worst stage"
text=$(env -i "$(command -v chroot)" "$scratch/root" /zeroplan sweep llama3-8b --gpus 8xH100-80GB --top 3 --quiet) || fail "sweep: exit $?"
has "$text" "take of"
text=$(env -i "$(command -v chroot)" "$scratch/root" /zeroplan validate llama3-8b --gpus 2xH100-80GB --tp 1 --pp 1 --zero 3 --backend host --steps 2 --quiet) || fail "validate: exit $?"
echo "$text"
