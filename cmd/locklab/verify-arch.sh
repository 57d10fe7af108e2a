#!/usr/bin/env bash
# Compares the trace hash of every run on this machine's processor, on 386 and
# on WebAssembly under node. They must not differ in a single bit.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

hashes() { # name, then the command that runs locklab
  local name=$1
  shift
  "$@" verify --every 13 --hashes >"$out/$name"
  echo "$name: $(tail -n 1 "$out/$name")"
}

go build -o "$out/locklab" ./cmd/locklab
hashes native "$out/locklab"
GOARCH=386 go build -o "$out/locklab-386" ./cmd/locklab
hashes 386 "$out/locklab-386"
GOOS=js GOARCH=wasm go build -o "$out/locklab.wasm" ./cmd/locklab
hashes wasm node "$(go env GOROOT)/lib/wasm/wasm_exec_node.js" "$out/locklab.wasm"

for name in 386 wasm; do
  diff -u "$out/native" "$out/$name" || { echo "verify-arch: the hashes on $name differ" >&2; exit 1; }
done
echo "verify-arch: all hashes are the same"
