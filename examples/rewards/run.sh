#!/bin/sh
# Two customers and their points: one who buys, redeems and leaves, and one who does not come back.
set -eu
here=$(dirname "$0")
. "$here/../server.sh"

"$pawl" entity type set rewards --queue rewards --handler rewards --rollover-events 10 | grep -E '^(type|version) '
"$pawl" worker --queue rewards --concurrency 4 -- "$here/worker.py" >"$work/worker.log" &
worker=$!

signal() {
    "$pawl" entity signal rewards "$@"
}
# An update is handled behind all signals that came before it, so its answer counts them.
ask() {
    "$pawl" entity update rewards "$@" || true
}

echo
echo "Ada buys three times; every purchase is sent twice:"
for order in 1:300 2:250 3:600; do
    for _ in first again; do
        signal ada add-points "{\"points\": ${order#*:}}" --dedup-key "order-${order%:*}"
    done
done
ask ada balance
echo
echo "She redeems 200 points, and would like to redeem 5000:"
ask ada redeem '{"points": 200}' --dedup-key redeem-1
ask ada redeem '{"points": 5000}' --dedup-key redeem-2
echo
echo "The same again is no second time:"
ask ada redeem '{"points": 200}' --dedup-key redeem-1

echo
echo "Bob's points go after a second without a signal:"
signal bob enroll '{"idle_ms": 1000}'
signal bob add-points '{"points": 700}' --dedup-key order-9
until "$pawl" entity events rewards bob --limit 200 | grep -q points.expired; do
    sleep 0.1
done
"$pawl" entity show rewards bob | grep '^state '

echo
echo "Ada leaves. What she had can still be read:"
signal ada unenroll --dedup-key bye
until "$pawl" entity show rewards ada | grep -q '^status  *finished'; do
    sleep 0.1
done
"$pawl" entity show rewards ada | grep '^state '
echo
echo "Her old order is still a duplicate; with a new one she starts again:"
signal ada add-points '{"points": 300}' --dedup-key order-1
signal ada add-points '{"points": 20}' --dedup-key order-4
ask ada balance

echo
echo "What was emitted, and how often each has rolled over:"
for customer in ada bob; do
    "$pawl" entity events rewards $customer --limit 200 | grep event.emitted
done
"$pawl" entity list rewards
