// What perdure has to say about itself: a few records, each about something that a person would want to know. They go
// to the sink that StoreOptions::log names, and nowhere without one.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "perdure/export.h"

namespace perdure {

enum class LogLevel {
  kInfo,     ///< Something began or ended as it should.
  kWarning,  ///< Perdure goes on, but somebody should look.
  kError,    ///< Something has ended for good.
};

/// "info", "warning" or "error".
PERDURE_EXPORT std::string_view name_of(LogLevel level);

struct LogField {
  std::string_view name;
  std::string_view value;
};

/// Lives as long as the call of the sink: copy what is to be kept.
struct LogRecord {
  LogLevel level;
  std::string_view component;  ///< The part of perdure that speaks: "store", "lmdb".
  std::string_view message;    ///< A sentence that is the same each time; what differs is in the fields.
  std::span<const LogField> fields;
};

/// Called on any of the store's threads, and perhaps on several at once. It should be quick, for a commit may be
/// waiting for it, and must not use the store: that is refused with kInvalidArgument. What it throws is dropped.
using LogSink = std::function<void(const LogRecord&)>;

}  // namespace perdure
