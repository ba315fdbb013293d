#!/usr/bin/env bash
# wheel_test.sh FILE.whl: in a clean virtual environment, without a network, both the command and the module answer.
source "$(dirname "$0")/check.sh"
wheel=$(realpath "$1") tests=$(cd "$(dirname "$0")" && pwd)
"${PYTHON:-python3}" -m venv "$scratch/venv" || skip "this Python makes no virtual environments"
bin=$scratch/venv/bin
"$bin/pip" install --quiet --no-index --no-deps --disable-pip-version-check "$wheel"
cd "$scratch"
has "$("$bin/zeroplan" fit llama3-8b --gpus 8xH100-80GB --quiet)" "fits: the worst stage"
"$bin/python" "$tests/wheel_answers.py" "$bin/zeroplan"
"$bin/pip" uninstall --quiet --yes zeroplan
[ ! -e "$bin/zeroplan" ] || fail "the program stayed behind"
# uv, where it is at hand, runs the command without installing it.
if command -v uvx >/dev/null; then
  has "$(UV_CACHE_DIR=$scratch/uv uvx --offline --no-index --from "$wheel" zeroplan fit llama3-8b --gpus 8xH100-80GB --quiet)" \
    "fits: the worst stage"
  echo "uvx answered"
fi
echo "installed, answered, removed"
