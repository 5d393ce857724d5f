#!/usr/bin/env bash
# Trains the models of docs/quality.md, compares each figure with its gate, and ends with a summary
# and, if a gate is missed, exit code 1.
#
#   tests/quality/run.sh TIER [--data DIR] [--only NAME]... [--list] [--satrap COMMAND]
#
# TIER is `fast`, under ten minutes on two idle cores, or `full`, hours. DIR has a folder for each
# data set (adult, frappe, ml1m, ml100k, gowalla, criteo_10k) with the files that the heads of the
# job files name; a check whose data is not there is skipped and named. NAME is a check of the tier;
# --list prints them. COMMAND runs the command line; default ./satrap.
set -euo pipefail
exec python3 -B "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/main.py" "$@"
