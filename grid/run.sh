#!/usr/bin/env bash
# Builds the pinned environments, proves every row, and makes docs/grid.md, .html and .json of it.
#
#   grid/run.sh [--only NAME]... [--profile P] [--case GLOB] [--again N] [--library COMMAND]
#               [--no-docs]
#
#   --only NAME        this row only (again for more); the reports of the others stay as they are
#   --profile P        a profile of `ressac prove`; the reports go to reports/P/, no docs are made
#   --case GLOB        these cases only; no report is kept
#   --again N          the failed cases of the last report only, each N times; how often they
#                      failed goes to reports/again/
#   --library COMMAND  the client of the row ressac-library (default: `prove-client library`,
#                      built with that feature, beside RESSAC or in target/)
#   --no-docs          leaves docs/ alone
#
# RESSAC is the binary that proves (default: target/release/ressac, else target/debug/ressac).
# GRID_TIME bounds one row (seconds), GRID_TARGET is where the Rust rows are built.
set -u
exec 3>&1
# Read whole before it begins, so that it can be edited while it runs.
{
cd "$(dirname "$0")/.." || exit 70
ROOT=$PWD GRID=$PWD/grid RUNS=$PWD/grid/.runs BIN=$PWD/grid/.bin
VENV=$GRID/.venv PY=$GRID/.venv/bin/python
JAVA_PATH="$GRID/adapters/_java/target/grid-java-1.jar:$GRID/adapters/_java/target/lib/*"
LIMIT=${GRID_TIME:-900} ONLY=() PROFILE=ressac CASE=() AGAIN= LIBRARY= DOCS=yes

usage() { sed -n '2,18s/^# \{0,1\}//p' "$GRID/run.sh"; exit "${1:-64}"; }
while [ $# -gt 0 ]; do
  case $1 in
    --only) ONLY+=("${2:?--only wants a row}"); shift ;;
    --profile) PROFILE=${2:?--profile wants a name}; shift ;;
    --case) CASE=(--run "${2:?--case wants a pattern}"); DOCS=no; shift ;;
    --again) AGAIN=${2:?--again wants a number}; shift ;;
    --library) LIBRARY=${2:?--library wants a command}; shift ;;
    --no-docs) DOCS=no ;;
    -h | --help) usage 0 ;;
    *) echo "grid: what is $1?" >&2; usage ;;
  esac
  shift
done

if [ -z "${RESSAC:-}" ]; then
  for RESSAC in "$ROOT/target/release/ressac" "$ROOT/target/debug/ressac"; do
    [ -x "$RESSAC" ] && break
  done
fi
if ! "$RESSAC" prove --help >/dev/null 2>&1; then
  echo "grid: $RESSAC does not prove; run \`cargo build --release -p ressac-cli\`" >&2
  exit 3
fi
export RESSAC
if [ -z "$LIBRARY" ]; then
  for built in "${RESSAC%/*}" "$ROOT/target/release" "$ROOT/target/debug"; do
    # Without the feature it knows no such client.
    PROVE_MODE=lines "$built/prove-client" library </dev/null >/dev/null 2>&1 || continue
    LIBRARY="$built/prove-client library"
    break
  done
fi

# Each environment is made once for each lock file; REASON says why it cannot be had.
declare -A MADE
environment() {
  # The mark in front tells an environment that was made from one that was not tried.
  [ -n "${MADE[$1]:-}" ] || MADE[$1]="#$(make_environment "$1" 2>&1 >/dev/null | tail -n 1)"
  REASON=${MADE[$1]#\#}
  [ -z "$REASON" ]
}
want() { command -v "$1" >/dev/null || { echo "$1 is not installed" >&2; return 1; }; }
# Runs quietly; what it says is kept, and one line tells of a failure.
quiet() {
  mkdir -p "$RUNS"
  timeout "${GRID_BUILD_TIME:-900}" "$@" >"$RUNS/build.log" 2>&1 && return
  echo "\`$1\` failed: $(grep -v '^ *$' "$RUNS/build.log" | tail -n 1 | cut -c 1-200)" >&2
  return 1
}
python_tools() { [ -x "$PY" ] || { want python3 && quiet python3 -m venv "$VENV"; }; }
make_environment() {
  case $1 in
    python)
      python_tools && { cmp -s "$GRID/adapters/_python/requirements.txt" "$VENV/made-of" ||
        { quiet "$VENV/bin/pip" install --disable-pip-version-check --require-hashes --no-deps \
            -r "$GRID/adapters/_python/requirements.txt" &&
          cp "$GRID/adapters/_python/requirements.txt" "$VENV/made-of"; }; } ;;
    node)
      want node && want npm && { cd "$GRID/adapters/_node" || return; } &&
        { cmp -s package-lock.json node_modules/made-of ||
          { quiet npm ci --no-audit --no-fund && cp package-lock.json node_modules/made-of; }; } ;;
    go)
      want go && { cd "$GRID/adapters/_go" || return; } &&
        quiet go build -trimpath -mod=readonly -o "$BIN/" ./cmd/... ;;
    java)
      want java && want mvn && { cd "$GRID/adapters/_java" || return; } &&
        quiet mvn -q -B package ;;
    rust)
      want cargo && { cd "$GRID/adapters/_rust" || return; } &&
        built=${GRID_TARGET:-$PWD/target} &&
        CARGO_TARGET_DIR=$built quiet cargo build --locked && mkdir -p "$BIN" &&
        cp "$built"/debug/{reqwest-retry,reqwest-own,backon} "$BIN/" ;;
    curl | wget)
      python_tools && want "$1" && known "$1" "$("$1" --version | head -n 1)" ;;
    ressac) python_tools ;;
    library)
      [ -n "$LIBRARY" ] && return
      echo "no --library given, and prove-client is not built with its feature library" >&2
      return 1 ;;
  esac
}
# A tool of the system is what it is; a version that is not the pinned one is said.
known() {
  local pinned; pinned=$(sed -n 's/^version = "\(.*\)"/\1/p' "$GRID/claims/$1.toml")
  case $2 in
    *" $pinned "*) ;;
    *) echo "grid: $1 is pinned at $pinned, here is: $2" >&3 ;;
  esac
  return 0
}

chosen() {
  [ ${#ONLY[@]} -eq 0 ] && return
  local name; for name in "${ONLY[@]}"; do [ "$name" = "$1" ] && return; done
  return 1
}
for name in "${ONLY[@]}"; do
  grep -q "^$name	" "$GRID/rows.tsv" || { echo "grid: there is no row $name" >&2; exit 64; }
done

REPORTS=$GRID/reports
[ "$PROFILE" = ressac ] || { REPORTS=$GRID/reports/$PROFILE DOCS=no; }
mkdir -p "$REPORTS" "$RUNS"
broken=0
while IFS=$'\t' read -r name need command; do
  case $name in '' | \#*) continue ;; esac
  chosen "$name" || continue
  if ! environment "$need"; then
    echo "$name: not run: $REASON"
    [ -x "$PY" ] && "$PY" "$GRID/page.py" not-run "$GRID/claims/$name.toml" "$REASON" \
      >"$REPORTS/$name.json"
    continue
  fi
  command=${command//@/$GRID/adapters}
  words=()
  for word in $command; do
    case $word in
      \$JAVA_PATH) words+=("$JAVA_PATH") ;;
      \$LIBRARY) read -ra library <<<"$LIBRARY"; words+=("${library[@]}") ;;
      *) word=${word/\$PY/$PY}; words+=("${word/\$BIN/$BIN}") ;;
    esac
  done
  out=$RUNS/$name
  if [ -n "$AGAIN" ]; then
    CASE=() out=$RUNS/again/$name
    for case in $("$PY" "$GRID/page.py" failed "$REPORTS/$name.json"); do CASE+=(--run "$case"); done
    rm -f "$REPORTS/again/$name.json"
    [ ${#CASE[@]} -gt 0 ] || { echo "$name: nothing failed"; continue; }
    CASE+=(--repeat "$AGAIN")
    mkdir -p "$REPORTS/again" "$RUNS/again"
  fi
  rm -rf "${out:?}"
  started=$SECONDS
  timeout --kill-after=10 "$LIMIT" "$RESSAC" prove --claims "$GRID/claims/$name.toml" \
    --profile "$PROFILE" --allow-inconclusive "${CASE[@]}" --out "$out" -- "${words[@]}" \
    >"$out.txt" 2>&1 </dev/null
  code=$?
  totals=$(grep -oE '[0-9]+ pass, .*' "$out.txt" | tail -n 1)
  echo "$name: exit $code after $((SECONDS - started)) s: $totals"
  if [ ! -s "$out/report.json" ]; then
    tail -n 5 "$out.txt" >&2
    broken=1
  elif [ -n "$AGAIN" ]; then
    "$PY" "$GRID/page.py" again "$out/cases" | tee "$REPORTS/again/$name.json"
  elif [ ${#CASE[@]} -eq 0 ]; then
    cp "$out/report.json" "$REPORTS/$name.json"
    rm -f "$REPORTS/again/$name.json"
  fi
done <"$GRID/rows.tsv"

if [ $DOCS = yes ] && [ -x "$PY" ]; then
  # In the order of the rows; a row that was never run has no report yet.
  reports=()
  while IFS=$'\t' read -r name _; do
    [ -f "$REPORTS/$name.json" ] && reports+=("$REPORTS/$name.json")
  done < <(grep -v '^#' "$GRID/rows.tsv")
  cd "$RUNS" && "$RESSAC" prove compare "${reports[@]}" --html grid.html --md grid.md >/dev/null &&
    "$PY" "$GRID/page.py" page grid.html grid.md "$ROOT/docs/grid" "${reports[@]}" || broken=1
fi
exit $broken
}
