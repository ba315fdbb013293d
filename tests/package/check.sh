# For tests of what is installed, in bash: sourced with the name of the test first.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "failed: $*" >&2; exit 1; }
skip() { echo "skipped: $*" >&2; exit 77; }
# has TEXT PART...: each part is in the text.
has() {
  local text=$1 part
  shift
  for part in "$@"; do [[ $text == *"$part"* ]] || fail "no '$part' in: $text"; done
}
