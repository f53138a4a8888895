// What the daemon says about itself: a line for each record, on standard error.
#pragma once

#include <string>
#include <string_view>

#include "http/serve.h"
#include "perdure/log.h"
#include "perdure/time.h"

namespace perdure::http {

/// As text, `2026-01-31T08:15:00.250Z warning store: the disk is nearly full free=3MiB`, or as an object of JSON.
std::string log_line(const LogRecord& record, WallTime at, LogFormat format);

/// Writes whole lines, so that several threads, and processes that share a terminal, do not mix theirs.
LogSink log_to_stderr(LogFormat format, LogLevel least);

/// A record of the daemon itself.
void log(const LogSink& sink, LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

}  // namespace perdure::http
