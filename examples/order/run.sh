#!/bin/sh
# Two orders, one that can be shipped and one that cannot, and what became of them.
set -eu
here=$(dirname "$0")
. "$here/../server.sh"

export LEDGER="$work/ledger"
"$pawl" workflow apply "$here/workflow.json"
"$pawl" worker --queue order -- "$here/worker.py" >"$work/worker.log" &
worker=$!

order() {
    echo
    echo "An order to $1:"
    : >"$LEDGER"
    "$pawl" run start order --input "{\"item\": \"lamp\", \"price\": 40, \"city\": \"$1\"}" --wait-ms 60000 || echo "exit code $?"
    echo "What happened outside, each once:"
    cut -d ' ' -f 2- "$LEDGER" | sed 's/^/  /'
}
order Berlin
order Atlantis

end_worker
echo
echo "What the worker did:"
cut -d ' ' -f 3- "$work/worker.log" | sed 's/^/  /'
