#!/bin/sh
# Installs the command-line agents that test/hooks drives, outside of what `npm ci` brings: they are large. Without them
# those tests say that they were skipped. Into $HOLDFAST_REAL_CLIENTS, or node_modules/.real-clients.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
folder=${HOLDFAST_REAL_CLIENTS:-$root/node_modules/.real-clients}
# The versions that the tests were written against; a newer one can be tried by its number.
claude=${CLAUDE_VERSION:-2.1.325}
codex=${CODEX_VERSION:-0.166.0}
gemini=${GEMINI_VERSION:-0.61.0}

mkdir -p "$folder"
cd "$folder"
echo '{ "name": "real-clients", "private": true }' > package.json
npm install --no-audit --no-fund --ignore-scripts \
  "@anthropic-ai/claude-code@$claude" "@openai/codex@$codex" "@google/gemini-cli@$gemini"
# Puts the program for this machine in its place; as the package's own install script it would have to be approved first.
(cd node_modules/@anthropic-ai/claude-code && node install.cjs)
node_modules/.bin/claude --version
node_modules/.bin/codex --version
node_modules/.bin/gemini --version
