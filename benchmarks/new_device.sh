#!/usr/bin/env bash
# Everything that a new device can tell in a given time, in one folder: measurements of every operator, a heuristic
# learned from them, its figures beside those of the heuristics that PyTorch ships, and what a decision saves.
#
#     benchmarks/new_device.sh [--device cuda] [--seconds 600] [--out FOLDER] [--workers N] [--operators "pad_mm bmm addmm"]
#
# --seconds is what measuring may take, of all operators together; learning and judging come on top, some minutes. Killed
# or stopped, the same command goes on where it was. On a CPU, `--device cpu --seconds 30` is a dry run of it all.
set -uo pipefail

device=cuda seconds=600 out= workers= operators="pad_mm bmm addmm"
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || { echo "$0: $1: a value is missing" >&2 && exit 2; }
    case "$1" in
    --device) device="$2" ;;
    --seconds) seconds="$2" ;;
    --out) out="$2" ;;
    --workers) workers="$2" ;;
    --operators) operators="$2" ;;
    *)
        sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift 2
done
here="$(cd "$(dirname "$0")" && pwd)"
python="${PYTHON:-$here/../.venv/bin/python}"
[ -x "$python" ] || python=python3
autoheur() { "$python" -m autoheur.cli.main "$@"; }
helper() { "$python" "$here/new_device.py" "$@"; }

description="$(helper describe --device "$device")" || exit 2
label="$(sed -n 's/^label: //p' <<<"$description" | tr -cs 'A-Za-z0-9\n' '-')"
out="${out:-new-device-$label}"
mkdir -p "$out" && printf '%s\n' "$description" >"$out/device.txt" || exit 2
trap 'exit 130' INT # what was measured is kept; without this the next step would begin
export AUTOHEUR_HOME="$out/home" # nothing of the user's is used or changed

failed=0
# A step that fails is told and counted; the other operators go on.
step() {
    local log="$out/log.txt"
    printf '\n$ %s\n' "$*" | tee -a "$log"
    "$@" 2>&1 | tee -a "$log"
    if [ "${PIPESTATUS[0]}" -ne 0 ]; then
        failed=$((failed + 1))
        return 1
    fi
}
# Write what a step prints on stdout, which is JSON, to a file.
json() {
    local file="$1"
    shift
    printf '\n$ %s >%s\n' "$*" "$file" | tee -a "$out/log.txt"
    if "$@" >"$file.partial" 2> >(tee -a "$out/log.txt" >&2); then
        mv "$file.partial" "$file"
    else
        rm -f "$file.partial"
        failed=$((failed + 1))
        return 1
    fi
}

count="$(wc -w <<<"$operators")"
learn=$((seconds * 3 / 4 / count)) hold=$((seconds / 4 / count))
# Three quarters to learn from, one quarter of other problems, on which everything is judged.
for operator in $operators; do
    for part in "learn 0 $learn" "held-out 1 $hold"; do
        read -r name seed budget <<<"$part"
        file="$out/$operator-$name.parquet"
        [ -e "$file" ] && continue # finished earlier
        step autoheur collect "$operator" --device "$device" ${workers:+--workers "$workers"} --seed "$seed" \
            --time-budget "$((budget > 0 ? budget : 1))s" --out "$file" --resume
    done
done
for operator in $operators; do
    data="$out/$operator-learn.parquet" held="$out/$operator-held-out.parquet" artifact="$out/$operator.json"
    [ -e "$data" ] && [ -e "$held" ] || continue
    json "$out/$operator-train.json" autoheur train "$operator" "$data" --test "$held" --out "$artifact" --json &&
        step autoheur codegen "$artifact" --out "$out/$operator.py" &&
        step autoheur install "$artifact"
    while read -r name; do
        json "$out/$operator-$name.json" autoheur evaluate "$name" --eval "held-out=$held" --json
    done < <(helper shipped --operator "$operator")
    json "$out/$operator-times.json" helper times --operator "$operator" --device "$device" --data "$held"
done
step helper summary --folder "$out" --operators $operators
[ "$failed" -eq 0 ] || echo "$failed steps failed; see $out/log.txt" >&2
exit $((failed > 0))
