#!/bin/sh
# Runs a development server with an example workflow and prints commands to try.
# usage: run.sh PAWL HOST:PORT FOLDER
set -eu
pawl=$1 listen=$2 data=$3
url=http://$listen
mkdir -p "$data"
"$pawl" serve --dev --listen "$listen" --store "sqlite:$data/pawl.db" &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server || true' EXIT
trap 'exit 0' INT TERM
until "$pawl" workflow list --url "$url" >/dev/null 2>&1; do
    kill -0 $server 2>/dev/null || exit 1
done
"$pawl" workflow apply examples/hello/workflow.json --url "$url"
cat <<TEXT

pawl is running at $url. Its data is in $data/. Stop it with Ctrl-C. Open $url/console/ in a browser, and try this in
another terminal:

  curl --json '{"input":{"name":"Ada"}}' -H 'Idempotency-Key: order-1' $url/api/v1/workflows/hello/runs
      Starts a run. Repeat it to get the same run with "created":false. With another input you get a 422.
  examples/hello/worker.sh $url
      Claims the job of the run and completes it.
  $pawl run list --url $url
      Lists the runs. $pawl --help lists all commands, and README.md continues from here.
TEXT
wait $server
