#!/bin/sh
# A schedule, its next times, and one of its runs: at once, or when the time that is given comes.
# usage: run.sh [CRON]      as '*/5 * * * * *', every five seconds
set -eu
here=$(dirname "$0")
. "$here/../server.sh"

"$pawl" workflow apply "$here/workflow.json"
"$pawl" schedule apply nightly --file "$here/schedule.json" ${1:+--cron "$1"}
"$pawl" worker --queue nightly -- "$here/worker.sh" >"$work/worker.log" &
worker=$!

last_run() {
    "$pawl" schedule show nightly | sed -n 's/^last_run_id  *//p'
}
echo
if [ $# -eq 0 ]; then
    echo "Nobody waits for three o'clock: a run now."
    run=$("$pawl" schedule trigger nightly | cut -d ' ' -f 1)
else
    echo "Waiting for its time."
    until run=$(last_run) && [ "$run" != - ]; do
        sleep 0.2
    done
fi
"$pawl" run watch "$run"
echo
"$pawl" run show "$run" | grep -E '^(status|output|labels) '
"$pawl" schedule delete nightly
