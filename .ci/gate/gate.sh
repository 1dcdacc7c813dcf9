#!/usr/bin/env bash
# Judges traces in a pipeline; the exit code decides. What to do comes from the environment, so that nothing of it is
# taken as shell text:
#   VIEWPROOF_PATHS         traces: files, directories or patterns, one a line
#   VIEWPROOF_OPTIONS       more words for `vsr audit`, one a line (--input, tigerbeetle)
#   VIEWPROOF_BASELINE      known violations (docs/gate.md); none where the file does not exist
#   VIEWPROOF_REPORTS       folder for audit.sarif, audit.xml (JUnit), audit.html, audit.json; made if missing
#   VIEWPROOF_INCONCLUSIVE  fail (default) or pass: may a run be undecided for want of evidence?
#   VIEWPROOF_SOURCE        where Viewproof is installed from, in words of pip; not used if VIEWPROOF_VSR is set
#   VIEWPROOF_VSR           the `vsr` to run
set -euo pipefail

fail() {
  echo "gate: $1" >&2
  exit 2
}

# What is installed, if that can be told: a version, or the commit of a checkout without changes.
revision() {
  case "$VIEWPROOF_SOURCE" in
    *==*) echo "$VIEWPROOF_SOURCE" ;;
    *) [ -d "$VIEWPROOF_SOURCE" ] && changed=$(git -C "$VIEWPROOF_SOURCE" status --porcelain 2>/dev/null) &&
      [ -z "$changed" ] && git -C "$VIEWPROOF_SOURCE" rev-parse HEAD ;;
  esac
}

# Installs into $room: a folder of this user alone, named by what is in it, or one of this run where that is not known
# (a branch, a checkout with changes). GitHub empties RUNNER_TEMP at each job.
installed() {
  base="${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}"
  key=$(revision) || key=""
  if [ -n "${RUNNER_TEMP:-}" ]; then base="$RUNNER_TEMP" key="${key:-$VIEWPROOF_SOURCE}"; fi
  if [ -n "$base" ] && [ -n "$key" ]; then
    name=$(python3 -c 'import hashlib, sys; print(hashlib.sha256(sys.argv[1].encode()).hexdigest()[:16])' "$key")
    room="$base/viewproof-gate/$name"
    (umask 077 && mkdir -p "$room")
    [ -O "$room" ] || fail "$room belongs to another user"
    exec 9>"$room.lock" # two jobs at once: one installs, the other waits
    flock 9 2>/dev/null || true
  else
    room=$(mktemp -d)
    trap 'rm -rf "$room"' EXIT
  fi
  if [ ! -e "$room/installed" ]; then
    python3 -m venv --clear "$room"
    "$room/bin/pip" install --quiet "$VIEWPROOF_SOURCE"
    touch "$room/installed"
  fi
  exec 9>&-
}

if [ -z "${VIEWPROOF_VSR:-}" ]; then
  [ -n "${VIEWPROOF_SOURCE:-}" ] || fail "VIEWPROOF_SOURCE does not say where to install Viewproof from"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "Python 3.11 or newer is needed"
  installed
  VIEWPROOF_VSR="$room/bin/vsr"
fi

case "${VIEWPROOF_INCONCLUSIVE:-fail}" in
  fail | pass) ;;
  *) fail "VIEWPROOF_INCONCLUSIVE: expected fail or pass, got $VIEWPROOF_INCONCLUSIVE" ;;
esac

words=()
while IFS= read -r line; do [ -z "$line" ] || words+=("$line"); done <<<"${VIEWPROOF_OPTIONS:-}"
if [ -n "${VIEWPROOF_BASELINE:-}" ] && [ -e "$VIEWPROOF_BASELINE" ]; then words+=(--baseline "$VIEWPROOF_BASELINE"); fi
if [ -n "${VIEWPROOF_REPORTS:-}" ]; then
  mkdir -p "$VIEWPROOF_REPORTS"
  words+=(--sarif "$VIEWPROOF_REPORTS/audit.sarif" --junit "$VIEWPROOF_REPORTS/audit.xml")
  words+=(--html "$VIEWPROOF_REPORTS/audit.html" --json "$VIEWPROOF_REPORTS/audit.json")
fi
paths=()
while IFS= read -r line; do [ -z "$line" ] || paths+=("$line"); done <<<"${VIEWPROOF_PATHS:-}"
[ ${#paths[@]} -gt 0 ] || fail "VIEWPROOF_PATHS names no traces"

code=0
"$VIEWPROOF_VSR" audit "${words[@]}" -- "${paths[@]}" || code=$?
if [ "$code" -eq 4 ] && [ "${VIEWPROOF_INCONCLUSIVE:-fail}" = pass ]; then
  echo "gate: inconclusive, and let pass (VIEWPROOF_INCONCLUSIVE=pass)"
  code=0
fi
exit "$code"
