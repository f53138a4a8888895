#!/bin/sh
# The manners of a library, read from its symbols: check_manners.sh LIBPERDURE.A LIBPERDURE.SO INCLUDE
# It prints and installs nothing behind its host's back, keeps no state outside of its objects, and exports nothing but
# what the public headers mark.
set -eu
archive="$1" shared="$2" include="$3"
failed=0

complain() {
  printf '%s:\n%s\n' "$1" "$2"
  failed=1
}

# State outside of objects. Constants that hold pointers lie in writable sections too; by their names they are constants.
#   abort_text, aborting     why the process is ending: see perdure/fatal.h
#   keep_for_ever            the threads of handlers that never came back: they may still run when all else is gone
#   current, in_body, in_handler, in_sink, this_lane  of one thread: what it is, and is running just now
allowed='(::k[A-Z][A-Za-z]*|^perdure::abort_text|::(aborting|current|in_body|in_handler|in_sink|this_lane)|HandlerPool::keep_for_ever\(.*\)::(kept|mutex))$'
state="$(objdump -t "$archive" | c++filt | awk -F'\t' '
  $1 ~ / \.(data|bss|tdata|tbss)/ && $1 !~ /\.data\.rel\.ro/ && $1 !~ / d / && $2 !~ /DW\.ref\./ {
    sub(/^[0-9a-f]+ +(\.hidden )?/, "", $2); print $2 }' | grep -Ev "$allowed" || true)"
[ -z "$state" ] || complain "state outside of objects" "$state"

# Output, signals, the end of the process. abort() is there on purpose.
words='stdin|stdout|stderr|printf|fprintf|vprintf|vfprintf|dprintf|puts|fputs|putchar|fputc|fwrite|perror|syslog'
words="$words|signal|sigaction|sigprocmask|pthread_sigmask|pthread_atfork|atexit|exit|_exit|quick_exit|setlocale"
words="$words|__printf_chk|__fprintf_chk|__vfprintf_chk|std::cout|std::cerr|std::clog|std::ios_base::Init::Init\\(\\)"
used="$(nm -uC "$archive" | awk '{ sub(/^ *[Uw] /, ""); print }' | sort -u | grep -Ex "$words" || true)"
[ -z "$used" ] || complain "used behind the host's back" "$used"

# Exports: each name in perdure's namespace belongs to a class or function that a public header marks.
marked="$(sed -nE -e 's/^(class|struct) PERDURE_EXPORT ([A-Za-z_]+).*/\2/p' \
  -e 's/^PERDURE_EXPORT [^(]*[ &]([A-Za-z_]+)\(.*/\1/p' "$include"/perdure/*.h | sort -u)"
exported="$(nm -DC --defined-only "$shared" | awk '{ $1 = ""; $2 = ""; print }' |
  sed -nE 's/^ *((vtable|typeinfo|typeinfo name|VTT) for )?perdure::((tuple|internal)::)*([A-Za-z_]+).*/\5/p' | sort -u)"
[ -n "$exported" ] || complain "exports" "none at all"
hidden="$(printf '%s\n' "$exported" | grep -Fxv "$marked" || true)"
[ -z "$hidden" ] || complain "exported, but not marked in a public header" "$hidden"

exit "$failed"
