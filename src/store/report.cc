#include "store/report.h"

namespace perdure {
namespace {

thread_local bool in_sink = false;

}  // namespace

InSink::InSink() : before_(in_sink) {
  in_sink = true;
}

InSink::~InSink() {
  in_sink = before_;
}

bool InSink::here() {
  return in_sink;
}

void log(const StoreOptions& options, LogLevel level, std::string_view component, std::string_view message,
         std::initializer_list<LogField> fields) {
  if (!options.log) return;
  InSink mark;
  try {
    options.log({level, component, message, {fields.begin(), fields.size()}});
  } catch (...) {
    // A host that cannot write its log must not lose its store by that.
  }
}

}  // namespace perdure
