#!/bin/sh
# The independent ledger: one line for each effect, appended in one write. Shares no code with what is tested.
#   ledger.sh entry FILE ENTRY SECONDS      waits, then writes ENTRY
#   ledger.sh run FILE SECONDS             waits, then writes the id of its run
#   ledger.sh append FILE                   writes the key of the action
#   ledger.sh keyed FILE                    the same, unless the key is there
#   ledger.sh probe FILE                    says whether the key is there
written() { grep -qxF "$HOLDFAST_ACTION_KEY" "$1" 2>/dev/null; }
case "$1" in
  entry) sleep "$4" && echo "$3" >> "$2" ;;
  run) sleep "$3" && echo "$HOLDFAST_RUN" >> "$2" ;;
  append) echo "$HOLDFAST_ACTION_KEY" >> "$2" && echo '{}' ;;
  keyed) { written "$2" || echo "$HOLDFAST_ACTION_KEY" >> "$2"; } && echo '{}' ;;
  probe) if written "$2"; then echo '{"outcome":"done","result":{}}'; else echo '{"outcome":"not_done"}'; fi ;;
  *) exit 2 ;;
esac
