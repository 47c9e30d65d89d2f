#!/bin/sh
# Runs gpu-kit with the cuBLAS and cuDNN of this machine: the system's, the toolkit's, or those of Python packages.
# If PyTorch is installed, its copying of batches to the GPU is measured too, for comparison.
# usage: ./run.sh [INDEX] [PART-OF-AN-OPERATOR | prefetch]
cd "$(dirname "$0")" || exit 1
directories=.
for name in libcublas.so.13 libcublas.so.12 libcublas.so.11 libcudnn.so.9 libcudnn.so.8; do
    for file in /usr/local/cuda*/lib64/$name /usr/local/lib/python3*/*-packages/nvidia/*/lib/$name \
        /usr/lib/python3/dist-packages/nvidia/*/lib/$name /opt/*/lib/python3*/site-packages/nvidia/*/lib/$name \
        "$HOME"/.local/lib/python3*/site-packages/nvidia/*/lib/$name; do
        [ -e "$file" ] && directories="$directories:$(dirname "$file")"
    done
done
LD_LIBRARY_PATH="$directories${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ./gpu-kit "$@"
result=$?
case ${2:-prefetch} in prefetch) command -v python3 >/dev/null && python3 torch_prefetch.py "${1:-0}" ;; esac
exit $result
