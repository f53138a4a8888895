#include "http/log.h"

#include <unistd.h>

#include <span>

#include "base/rfc3339.h"
#include "perdure/value.h"
#include "runtime/wall_clock.h"

namespace perdure::http {
namespace {

bool is_plain(std::string_view text) {
  return !text.empty() && text.find_first_of(" \t\r\n\"=\\") == std::string_view::npos;
}

}  // namespace

std::string log_line(const LogRecord& record, WallTime at, LogFormat format) {
  if (format == LogFormat::kJson) {
    Value::Map out{{"time", format_rfc3339(at)},
                   {"level", name_of(record.level)},
                   {"component", record.component},
                   {"message", record.message}};
    for (const LogField& field : record.fields) out.emplace(std::string(field.name), field.value);
    return Value(std::move(out)).to_json() + "\n";
  }
  std::string line = format_rfc3339(at);
  line.append(" ").append(name_of(record.level)).append(" ").append(record.component).append(": ");
  line.append(record.message);
  for (const LogField& field : record.fields) {
    line.append(" ").append(field.name).append("=");
    line.append(is_plain(field.value) ? std::string(field.value) : Value(field.value).to_json());
  }
  return line + "\n";
}

LogSink log_to_stderr(LogFormat format, LogLevel least) {
  return [format, least](const LogRecord& record) {
    if (record.level < least) return;
    std::string line = log_line(record, wall_now(), format);
    // What cannot be written is lost: there is nowhere else to say so.
    [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  };
}

void log(const LogSink& sink, LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  sink({level, "daemon", message, std::span(fields.begin(), fields.size())});
}

}  // namespace perdure::http
