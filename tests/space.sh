#!/usr/bin/env bash
# What a Hugging Face Space does with this repository, as far as it can be done at home: a clean environment with
# requirements.txt alone, the Space's variables, `python app.py`, the first page and one small run, on a CPU and
# with a lent GPU. Takes some minutes and 6 GB; give PYTHON for another interpreter. Needs `make setup`.
set -euo pipefail
cd "$(dirname "$0")/.."
tests=${TESTS_PYTHON:-.venv/bin/python}
home=$(mktemp -d "${TMPDIR:-/tmp}/space.XXXXXX")
trap 'rm -rf "$home"' EXIT
${PYTHON:-python3} -m venv "$home/venv"
"$home/venv/bin/python" -m pip install --quiet --requirement requirements.txt
"$home/venv/bin/python" -m pip list 2>/dev/null | grep -iE '^(gradio|torch|transformers|datasets|huggingface_hub) '
SPACE_PYTHON="$home/venv/bin/python" "$tests" -m pytest tests/ui/test_space.py --timeout=900 --durations=3
