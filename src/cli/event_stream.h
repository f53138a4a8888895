// Server-sent events, read piece by piece.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace perdure::cli {

struct StreamedEvent {
  std::string id;     ///< The last that was said: it may be of an earlier event.
  std::string event;  ///< "message" if none was said.
  std::string data;
};

class EventStreamParser {
 public:
  /// The events that `piece` completes.
  std::vector<StreamedEvent> feed(std::string_view piece);

 private:
  void read_line(std::string_view line, std::vector<StreamedEvent>& done);

  std::string buffer_;
  std::string id_;
  std::string event_;
  std::string data_;
  bool has_data_ = false;
};

}  // namespace perdure::cli
