#!/usr/bin/env bash
# first_run_test.sh SOURCE: on a machine without packages script/run says in a line what it will do and how long it takes,
# then answers, quietly from the second time on; a build that fails shows its end. The machine's tools are stand-ins.
source "$(dirname "$0")/check.sh"
tree=$scratch/tree tools=$scratch/tools
mkdir -p "$tree" "$tools"
cp -r "$1"/{script,CMakeLists.txt,CMakePresets.json} "$tree"
for room in cost_model planner presets gpu_probe validator cli tests; do
  mkdir "$tree/$room"
  touch "$tree/$room/"{a,b}.cpp
done
tool() { printf '#!/usr/bin/env bash\n%s\n' "$2" >"$tools/$1"; chmod +x "$tools/$1"; }
tool dpkg-query '[ -e "$0.all" ] && echo installed'
tool apt-get 'echo noise; echo more noise >&2; touch "${0%/*}/dpkg-query.all"'
tool id 'echo 0'
tool nproc 'echo 2'
tool cmake 'echo noise; echo more noise >&2
  [ ! -e "$0.fails" ] || { echo "a.cpp:1: no such thing" >&2; exit 1; }
  mkdir -p build/release; touch build/release/build.ninja
  printf "#!/usr/bin/env bash\necho fits\n" >build/release/zeroplan; chmod +x build/release/zeroplan'
export PATH=$tools:$PATH

text=$("$tree/script/run" fit 2>"$scratch/errors")
[ "$text" = fits ] || fail "not answered: $text"
[ "$(wc -l <"$scratch/errors")" -eq 1 ] || fail "more than a line: $(cat "$scratch/errors")"
has "$(cat "$scratch/errors")" "installing g++ cmake" "building 12 files: about 1 min on 2 cores"
has "$(cat "$tree/build/release/build.log")" "more noise"
for _ in 1 2; do
  touch -d "1 minute ago" "$tree/build/release/zeroplan"
  touch "$tree/cli/a.cpp" # as an edit does
  text=$("$tree/script/run" fit 2>&1)
  [ "$text" = fits ] || fail "not quiet: $text"
done

# With its packages there, it names none.
rm -r "$tree/build"
has "$("$tree/script/run" fit 2>&1)" "the first time, building 12 files"
touch "$tools/cmake.fails"
touch -d "1 minute" "$tree/cli/b.cpp" # from now: within one tick of the clock it would be no newer than the program
code=0
text=$("$tree/script/run" fit 2>&1) || code=$?
[ "$code" -eq 3 ] || fail "a build that fails: exit $code"
has "$text" "a.cpp:1: no such thing" "zeroplan: error: 'cmake --build"
echo "$(cat "$scratch/errors")"
