#!/usr/bin/env bash
# bundle_test.sh SOURCE BUILD: what script/bundle makes of BUILD is small and whole, and its script/gpu runs to its end in a
# root that has a shell's tools and nothing else: no network, compiler, driver, Python or packages.
source "$(dirname "$0")/check.sh"
source_tree=$1 build=$2
bundle=$scratch/bundle
text=$("$source_tree/script/bundle" "$bundle" "$build" 2>"$scratch/log") || fail "exit $?: $(cat "$scratch/log")"
cat "$scratch/log"
echo "$text" | sed 's/.*: //'
size=$(du -sb "$bundle" | cut -f1)
[ "$size" -lt $((64 << 20)) ] || fail "$size bytes"
[ "$(wc -l <"$bundle/README")" -le 12 ] || fail "a README of $(wc -l <"$bundle/README") lines"
for file in bin/zeroplan script/gpu validator/pytorch/measure.py validator/pytorch/grid.txt commit.txt README; do
  [ -s "$bundle/$file" ] || fail "no $file"
done
# Where GPU parts are built, they are in it.
for program in zeroplan-gpu tests/gpu_tests; do
  [ ! -x "$build/$program" ] || [ -x "$bundle/bin/${program##*/}" ] || fail "no $program"
done
# All libraries but the machine's own are in it, and found there.
for program in "$bundle"/bin/*; do
  while read -r name arrow file _; do
    case $name in
      lib[cm].so.* | libdl.so.* | librt.so.* | libpthread.so.* | libcublas* | libnccl* | linux-vdso* | /lib*) ;;
      *) [ "$(readlink -f "$file")" = "$(readlink -f "$bundle/lib/$name")" ] || fail "${program##*/} takes $name from $file" ;;
    esac
  done < <(ldd "$program")
done

root=$scratch/root
mkdir -p "$root"/{tmp,usr/bin,dev}
ln -s usr/bin "$root/bin"
for tool in bash env dirname date mkdir cat tee sed grep head timeout cp rm tr; do
  file=$(command -v "$tool") || fail "no $tool here"
  cp "$(readlink -f "$file")" "$root/usr/bin/$tool"
done
# Libraries of the tools, and the C library of our programs.
{ ldd "$root"/usr/bin/*; ldd "$bundle/bin/zeroplan" | grep -E 'lib[cm]\.so|ld-linux'; } |
  grep -oE '/[^ ]+\.so[^ ]*' | sort -u | while read -r file; do
    mkdir -p "$root${file%/*}"
    cp -n "$(readlink -f "$file")" "$root$file"
  done
cp -r "$bundle" "$root/bundle"
touch "$root/dev/null"  # a file would do for tools that only write to it

# A user's own namespace where this one may not change its root; without a network where that can be taken away.
unshare=$(command -v unshare || true) chroot=$(command -v chroot || echo /usr/sbin/chroot)
inside=()
for way in ${unshare:+"$unshare --net $chroot" "$unshare --net --map-root-user $chroot"} "$chroot"; do
  $way "$root" /bin/bash -c true 2>/dev/null && { inside=($way); break; }
done
[ ${#inside[@]} -gt 0 ] || skip "chroot is not permitted; script/gpu of the bundle was not run in an empty root"
echo "in an empty root by: ${inside[*]}"
# Without /proc a program does not know where it lies, nor where its libraries do.
alone() { env -i PATH=/usr/bin LD_LIBRARY_PATH=/bundle/lib "${inside[@]}" "$root" "$@"; }
began=$SECONDS code=0
text=$(alone /bin/bash /bundle/script/gpu /tmp/out 2>&1) || code=$?
echo "$text"
[ "$code" -eq 3 ] || fail "exit $code, and 3 was due"
[ $((SECONDS - began)) -le 20 ] || fail "it took $((SECONDS - began)) s"
lines=$(wc -l <"$root/tmp/out/summary.txt")
[ "$lines" -ge 12 ] || fail "$lines parts"
[ "$(grep -c ': no device$' "$root/tmp/out/summary.txt")" -eq "$lines" ] || fail "a part does not say no device"
# Where a driver is, but no cuBLAS and NCCL, it names what is missing.
if [ -x "$bundle/bin/zeroplan-gpu" ]; then
  printf '#!/bin/bash\n' >"$root/usr/bin/nvidia-smi"
  chmod +x "$root/usr/bin/nvidia-smi"
  code=0
  text=$(alone /bin/bash /bundle/script/gpu /tmp/out 2>&1) || code=$?
  [ "$code" -eq 3 ] || fail "without libraries: exit $code, and 3 was due: $text"
  has "$text" "validate-zero-3: not run: no libcublasLt.so" "ZEROPLAN_LIBRARIES=FOLDER says where"
fi
# The planner answers there too.
answer=$(alone /bundle/bin/zeroplan fit llama3-8b --gpus 8xH100-80GB --quiet) ||
  fail "fit: exit $?"
has "$answer" "fits: the worst stage"
# And its engine, with products of its own: OpenBLAS is not there.
answer=$(alone /bundle/bin/zeroplan validate llama3-8b --gpus 2xH100-80GB \
  --tp 1 --pp 1 --zero 3 --backend host --steps 2 --quiet) || fail "validate: exit $?"
has "$answer" "agrees: 2 ranks on the host"
