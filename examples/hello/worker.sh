#!/bin/sh
# A worker in a few lines: claims a job, does it, hands in the result, until stopped.
# usage: worker.sh [URL]     PAWL names the binary, PAWL_API_KEY the key where one is needed
set -eu
here=$(dirname "$0")
pawl=${PAWL:-$here/../../build/pawl}
[ -z "${1:-}" ] || export PAWL_URL="$1"

# One line for each claimed job: its id, its lease and what it made.
work='
import json, sys
for job in json.load(sys.stdin)["jobs"]:
    greeting = "Hello, " + job["input"]["name"] + "!"
    print(job["job_id"], job["lease_token"], json.dumps({"greeting": greeting}))
'

while :; do
    # Waits up to five seconds for a job; an empty list is a normal answer.
    claimed=$("$pawl" job claim --queue hello --wait-ms 5000 --json)
    printf '%s' "$claimed" | python3 -c "$work" | while read -r id lease output; do
        # A lease that ended meanwhile is refused: the job belongs to somebody else by then.
        "$pawl" job complete "$id" --lease-token "$lease" --output "$output" || true
    done
done
