#!/bin/sh
# hostile.sh TOKEN FOLDER TRICK…: a command that does not want to end. Every process has TOKEN among its arguments, or
# FOLDER/held open as descriptor 9; by that it is found without asking anybody. FOLDER/never is a FIFO that nobody writes
# to: opening it for reading is a wait that needs no process. FOLDER/begun names the tricks that were begun; FOLDER/away is
# there once all were.
TOKEN=$1
FOLDER=$2
shift 2
exec 9>>"$FOLDER/held"
WAIT='trap "" TERM HUP INT; read _ <"$2/never"'
LEAVES=
# An instant of life, then it goes on as another process; two minutes of that at most, whoever died meanwhile.
if [ "$1" = hop ]; then
  sleep 0.02
  [ "$2" -eq 0 ] || [ -e "$FOLDER/landed" ] || { setsid sh "$0" "$TOKEN" "$FOLDER" hop $(($2 - 1)) & }
  exit 0
fi
# One of a tree of fifteen, each of which begins another as soon as the last one was killed, two hundred times at most.
if [ "$1" = fork ]; then
  trap '' TERM HUP INT
  if [ "$2" -gt 0 ]; then for _ in 1 2; do sh "$0" "$TOKEN" "$FOLDER" fork $(($2 - 1)) & done; fi
  LEFT=200
  while [ $LEFT -gt 0 ] && [ ! -e "$FOLDER/landed" ]; do
    sh -c "$WAIT" sh "$TOKEN" "$FOLDER" &
    wait $!
    LEFT=$((LEFT - 1))
  done
  exit 0
fi
for TRICK in "$@"; do
  case $TRICK in
  stubborn) trap '' TERM HUP INT QUIT ;;
  volume) yes "$TOKEN" | head -c 1000000000 & ;;
  complaints) yes "$TOKEN" | head -c 1000000000 >&2 & ;;
  away) (setsid sh -c "$WAIT" sh "$TOKEN" "$FOLDER" &) ;;
  nohup) nohup sh -c "$WAIT" sh "$TOKEN" "$FOLDER" >/dev/null 2>&1 </dev/null & ;;
  scrub) (setsid env -i "PATH=$PATH" sh -c "$WAIT" sh "$TOKEN" "$FOLDER" &) ;;
  bare) env -i "PATH=$PATH" sh -c "$WAIT" sh "$TOKEN" "$FOLDER" & ;;
  bomb) sh "$0" "$TOKEN" "$FOLDER" fork 3 & ;;
  comets) for _ in 1 2 3; do sh "$0" "$TOKEN" "$FOLDER" hop 5000 & done ;;
  frozen) sh -c 'kill -STOP $$; read _ <"$2/never"' sh "$TOKEN" "$FOLDER" & ;;
  silent) exec >&- 2>&- ;;
  leaves) LEAVES=yes ;;
  esac
  echo "$TRICK" >>"$FOLDER/begun"
done
: >"$FOLDER/away"
[ -n "$LEAVES" ] || read _ <"$FOLDER/never"
