#!/bin/sh
# Installs the Debian packages that are missing, as root or through sudo, and says which.
# usage: bootstrap.sh [test|packages]     also what only the tests need, or what builds and tests packages
set -eu
packages="gcc libc6-dev make cmake ninja-build pkg-config python3 python3-yaml libmicrohttpd-dev libsqlite3-dev libpq-dev
 libjansson-dev liblua5.4-dev libyaml-dev libssl-dev libcurl4-openssl-dev libnats-dev libhiredis-dev libmimalloc-dev libcmocka-dev tzdata"
[ "${1:-}" != test ] || packages="$packages git python3-pytest python3-psycopg2 python3-jsonschema python3-venv clang-14 llvm-14 libclang-rt-14-dev clang-format-14
 clang-tidy-14 cppcheck mold prometheus openssl sqlite3 postgresql curl nats-server redis-server haproxy iproute2 systemd valgrind dpkg-dev zsh fish mandoc chromium fonts-dejavu-core"
[ "${1:-}" != packages ] || packages="$packages dpkg-dev patchelf buildah crun mmdebstrap ca-certificates"
# Any node does that has npm; Debian's if there is none.
command -v npm >/dev/null || packages="$packages nodejs npm"

missing=""
for p in $packages; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null || true)" = installed ] || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "pawl needs these Debian packages; install them as root:$missing" >&2; exit 1; }
    as_root=sudo
fi
echo "installing Debian packages:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# prometheus is here for promtool, systemd for systemd-analyze. RUNLEVEL=1 asks packages not to start their servers; systemd may start them
# all the same.
if ! { $as_root apt-get update && RUNLEVEL=1 $as_root env DEBIAN_FRONTEND=noninteractive \
       apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
