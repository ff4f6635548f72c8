#!/bin/sh
# Serves the default: a development server on its own data file, with an example workflow, and says what to try.
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

pawl is running at $url with its data in $data/ (stop it with Ctrl-C). Try, in another terminal:

  curl --json '{"input":{"name":"Ada"}}' -H 'Idempotency-Key: order-1' $url/api/v1/workflows/hello/runs
      … and once more: the same run, "created":false. With another input: 422.
  examples/hello/worker.sh $url
      claims the run's job and completes it
  $pawl run list --url $url
  $pawl --help                                     README.md goes on from here
TEXT
wait $server
