#!/bin/bash
# What CONTRIBUTING.md asks for, with PyTorch without CUDA: Codespaces have no GPU.
set -euo pipefail
python -m venv .venv
.venv/bin/pip install -q --extra-index-url https://download.pytorch.org/whl/cpu -c constraints.txt torch
.venv/bin/pip install -q -c constraints.txt -e '.[dev]'
npm ci --no-audit --no-fund
.venv/bin/pre-commit install
