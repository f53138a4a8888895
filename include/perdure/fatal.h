// Broken invariants.
//
// perdure checks its own state in release builds too, and when it finds something that cannot be, it calls abort():
// what is durable is safe, and starting again from it is a tested path, while going on with a broken state is not. The
// library itself writes nothing anywhere. Before the abort the text is put where the host can find it: a handler of
// SIGABRT or a crash reporter calls abort_message(), a debugger or a core dump shows it under the name
// perdure::abort_text.
#pragma once

#include "perdure/export.h"

namespace perdure {

/// Why perdure is ending this process, with the place in its source; empty as long as it is not. Never null. May be
/// called in a signal handler. If several threads break at once, the first one's text stays.
PERDURE_EXPORT const char* abort_message() noexcept;

}  // namespace perdure
