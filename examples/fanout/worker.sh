#!/bin/sh
# A worker of one line, eight jobs at a time: each gets a text and prints a number.
exec "${PAWL:-$(dirname "$0")/../../build/pawl}" worker --queue fanout --concurrency 8 "$@" -- wc -w
