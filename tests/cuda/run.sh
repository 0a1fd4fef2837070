#!/bin/bash
# Builds the native part of the CUDA backend in $BUILD (default /tmp/kerncap-cuda-build) and runs on_device.py.
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-/tmp/kerncap-cuda-build}
cmake -S native -B "$build" -G Ninja > "$build.log" 2>&1 || { tail -20 "$build.log"; exit 1; }
ninja -C "$build" kerncap_cuda kerncap-replay-cuda > "$build.log" 2>&1 || { tail -40 "$build.log"; exit 1; }
mkdir -p "$build/native"
cp "$build/interpose/cuda/libkerncap_cuda.so" "$build/replay/kerncap-replay-cuda" "$build/native/"
export KERNCAP_NATIVE_DIR=$build/native PYTHONPATH=app:tests/cuda PYTHONUNBUFFERED=1
exec python3 tests/cuda/on_device.py "$@"
