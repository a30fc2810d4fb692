#!/usr/bin/env bash
# Prints lines and bytes of Go by folder, separately for product, tests, benchmark and test kits.
# Fails if a line of Go has more than 140 characters (a tab is one), unless it has a struct tag, which cannot be broken.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8
max=140

files() { git ls-files -z --cached --others --exclude-standard '*.go' | xargs -0 -r ls -d 2>/dev/null; }

files | xargs wc -lc | awk '
  $3 == "total" { next }
  {
    of = "product"
    if ($3 ~ /^(cmd\/bahi-bench|cmd\/bahi-prove|internal\/prove|internal\/test|scripts)\//) of = "kit"
    if ($3 ~ /_test\.go$/) of = "test"
    n = split($3, path, "/")
    room[1] = path[1] "/"
    room[2] = n > 2 ? path[1] "/" path[2] "/" : room[1] "*"
    for (i = 1; i <= 2; i++) {
      seen[room[i]] = 1
      lines[room[i], of] += $1
      bytes[room[i], of] += $2
    }
    lines["all", of] += $1
    bytes["all", of] += $2
  }
  function row(name) {
    printf "%-34s %8d %9d %8d %9d %8d %9d\n", name, lines[name, "product"], bytes[name, "product"],
      lines[name, "test"], bytes[name, "test"], lines[name, "kit"], bytes[name, "kit"]
  }
  END { for (name in seen) row(name); row("all") }' | sort -k1,1 | {
  printf '%-34s %18s %18s %18s\n%-34s' '' product tests 'benchmark and kits' folder
  for _ in 1 2 3; do printf ' %8s %9s' lines bytes; done
  echo
  awk '$1 == "all" { all = $0; next } { print } END { print all }'
}

long=$(files | xargs grep -nE "^.{$((max + 1)),}" /dev/null | grep -vE '`.*[a-z]+:".*`' | cut -d: -f1,2 || true)
if [ -n "$long" ]; then
  printf 'lines of more than %d characters:\n%s\n' "$max" "$long" >&2
  exit 1
fi
