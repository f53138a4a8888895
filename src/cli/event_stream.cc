#include "cli/event_stream.h"

#include <utility>

namespace perdure::cli {

std::vector<StreamedEvent> EventStreamParser::feed(std::string_view piece) {
  std::vector<StreamedEvent> done;
  buffer_ += piece;
  std::size_t begin = 0;
  for (std::size_t end; (end = buffer_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string_view line(buffer_.data() + begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    read_line(line, done);
  }
  buffer_.erase(0, begin);
  return done;
}

void EventStreamParser::read_line(std::string_view line, std::vector<StreamedEvent>& done) {
  if (line.empty()) {
    if (has_data_) done.push_back({id_, event_.empty() ? "message" : event_, data_});
    event_.clear();
    data_.clear();
    has_data_ = false;
    return;
  }
  std::size_t colon = line.find(':');
  std::string_view name = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "data") {
    if (std::exchange(has_data_, true)) data_ += '\n';
    data_ += value;
  } else if (name == "event") {
    event_ = value;
  } else if (name == "id") {
    id_ = value;
  }
}

}  // namespace perdure::cli
