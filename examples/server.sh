# Sourced by the run.sh of each example: finds the pawl binary and a server, and cleans up at the end.
# PAWL names the binary, else it is the one in build/. PAWL_URL names a running development server; without it there is
# one just for this example, in a temporary folder. $work is such a folder in any case; `worker` may name a background
# process that is to end with us.
pawl=${PAWL:-$here/../../build/pawl}
work=$(mktemp -d)
worker= server=

end() {
    kill "$1" 2>/dev/null && wait "$1" || true
}
# A worker writes a job's line after the server has taken the result: its log is complete when it has ended.
end_worker() {
    end "$worker"
    worker=
}
finish() {
    for process in $worker $server; do
        end "$process"
    done
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

if [ -z "${PAWL_URL:-}" ]; then
    : >"$work/server.log"
    "$pawl" serve --dev --listen 127.0.0.1:0 --store "sqlite:$work/pawl.db" >"$work/server.log" 2>&1 &
    server=$!
    until PAWL_URL=$(sed -n 's/^pawl listening on //p' "$work/server.log") && [ -n "$PAWL_URL" ]; do
        kill -0 "$server" 2>/dev/null || { cat "$work/server.log" >&2; exit 1; }
        sleep 0.05
    done
    export PAWL_URL
fi
