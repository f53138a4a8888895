#!/usr/bin/env bash
# A daemon with something to look at: mails of which some fail, images that are slow, a page that is rebuilt when it was
# edited, a report each minute, and invoices with numbers. Ctrl-C stops all of it.
set -euo pipefail
perdure="$(readlink -f "${1:?usage: demo.sh BINARY [arguments of serve]}")"
shift
folder="$(mktemp -d)"
pids=()
stop() {
  trap - EXIT INT TERM
  kill "${pids[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap stop EXIT
trap 'exit 0' INT TERM

mkfifo "$folder/said"
"$perdure" serve --store "lmdb:$folder/store" "$@" >"$folder/said" &
pids+=($!)
while read -r line; do
  echo "$line"
  [[ "$line" != listening* ]] || break
done <"$folder/said"
export PERDURE_URL="unix://$folder/store/perdure.sock"

"$perdure" schedule set report '{"every": "Every 1min", "worker": "report"}' >/dev/null
"$perdure" debouncer set rebuild '{"quiet": "2s", "max_wait": "10s", "worker": "rebuild"}' >/dev/null
"$perdure" partition set billing '{"types": {"shop": {"invoice": 1}}}' >/dev/null
"$perdure" worker set mail '{"retry": {"delay": "3s", "max": 2}}' >/dev/null

cat >"$folder/mail" <<'HANDLER'
#!/usr/bin/env bash
sleep "0.$((RANDOM % 9))"
((RANDOM % 5)) || { echo "the mail server said no" >&2; exit 1; }
HANDLER
chmod +x "$folder/mail"
"$perdure" work mail --concurrency 4 -- "$folder/mail" >/dev/null 2>&1 &
pids+=($!)
"$perdure" work image -- sleep 2 >/dev/null 2>&1 &
pids+=($!)
"$perdure" work rebuild -- sleep 1 >/dev/null 2>&1 &
pids+=($!)
"$perdure" work report -- cat >/dev/null 2>&1 &
pids+=($!)

echo "the demo is at work; look at it in another terminal:"
echo "  export PERDURE_URL=$PERDURE_URL"
echo "  $perdure worker ls"
echo "  $perdure stream"
while kill -0 "${pids[0]}" 2>/dev/null; do
  "$perdure" emit mail "{\"to\": \"user-$((RANDOM % 100))\"}" >/dev/null || break
  ((RANDOM % 3)) || "$perdure" emit image "{\"name\": \"photo-$RANDOM\"}" >/dev/null || break
  ((RANDOM % 2)) || "$perdure" touch rebuild "page-$((RANDOM % 3))" >/dev/null || break
  ((RANDOM % 4)) || "$perdure" append billing '{"type": "shop", "workspace": 7, "next": ["invoice"]}' >/dev/null || break
  sleep "0.$((RANDOM % 9))"
done
