#!/bin/sh
# Counts the words of each line of a file, each line as a job of its own.
# usage: run.sh [FILE]      default: this example's README.md
set -eu
here=$(dirname "$0")
. "$here/../server.sh"
file=${1:-$here/README.md}

"$pawl" workflow apply "$here/workflow.json"

lines='
import json, sys
json.dump({"lines": [line for line in sys.stdin.read().splitlines() if line.strip()]}, sys.stdout)
'
python3 -c "$lines" <"$file" >"$work/input.json"

"$here/worker.sh" >"$work/worker.log" &
worker=$!
"$pawl" run start fanout --input "@$work/input.json" --wait-ms 60000
end_worker
echo "$(wc -l <"$work/worker.log") jobs; wc -w says $(wc -w <"$file")"
