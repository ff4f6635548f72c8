#!/bin/sh
# Does one job: how full is the disk? `pawl worker` runs it. Paths with quotes in them are not for this example.
set -eu
path=$(sed -n 's/.*"path": *"\([^"]*\)".*/\1/p')
[ -e "$path" ] || { echo "there is no $path" >&2; exit 65; }
df -P "$path" | awk 'NR == 2 { sub("%", "", $5); printf "{\"used_percent\": %d}", $5 }'
