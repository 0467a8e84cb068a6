#!/usr/bin/env bash
# Does what the README tells a newcomer to do, as a newcomer: a fresh clone of what is committed, an empty home, nothing
# on the PATH but the system's own tools. For people, before a release.
#
# A machine that needs settings to reach its package registry hands them over by environment variables named
# npm_config_*; nothing else from the caller's environment gets through.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

source=$PWD
place=$(mktemp -d)
started=
finish() {
  [ -z "$started" ] || kill -- "-$started" 2>/dev/null || true
  rm -rf "$place"
}
trap finish EXIT
mkdir "$place/home"

# The system's Node and npm, not those that an npm script has put in front.
path=
for tool in node npm git; do
  found=$(type -ap "$tool" | grep -v '/node_modules/' | head -n 1) || { echo "clean-clone: install $tool first" >&2; exit 1; }
  path=$path$(dirname "$found"):
done
path=$path/usr/bin:/bin

settings=()
while IFS= read -r name; do settings+=("$name=${!name}"); done < <(compgen -e | grep '^npm_config_' || true)
[ -z "${npm_lifecycle_event:-}" ] || settings=()
newcomer() { env -i HOME="$place/home" PATH="$path" LANG=C.UTF-8 ${settings[@]+"${settings[@]}"} "$@"; }

git clone --quiet "$source" "$place/holdfast"
[ -z "$(git status --porcelain)" ] || echo "clean-clone: what is not committed is not tried" >&2
cd "$place/holdfast"
echo "clean-clone: $(git rev-parse --short HEAD) with Node $(newcomer node --version), npm $(newcomer npm --version)"

newcomer npm ci

# It must come up, stay up, and go down on request.
set -m
newcomer npm start >"$place/start.log" 2>&1 &
started=$!
set +m
for _ in $(seq 60); do
  if ! kill -0 "$started" 2>/dev/null; then break; fi
  if grep -q 'holdfast: up:' "$place/start.log"; then up=yes; break; fi
  sleep 0.5
done
cat "$place/start.log"
[ "${up:-}" = yes ] || { echo "clean-clone: npm start did not come up within 30 s" >&2; exit 1; }
kill -TERM -- "-$started"
wait "$started" || true
started=

newcomer npm test
[ -z "$(git status --porcelain)" ] || { echo "clean-clone: the two commands left files behind" >&2; git status --short >&2; exit 1; }
echo "clean-clone: npm ci, npm start and npm test work"
