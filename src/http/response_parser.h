// Reads HTTP/1.1 answers piece by piece, as they come in from a socket that nobody waits on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "http/message.h"
#include "perdure/error.h"

namespace perdure::http {

class ResponseParser {
 public:
  /// A head that is larger is refused, and so is a body that nobody takes away before it is.
  static constexpr std::size_t kHeadMax = std::size_t{64} << 10;
  static constexpr std::size_t kBodyMax = std::size_t{256} << 20;

  /// Takes what has come in. Errors: kUnavailable for what is not HTTP, kTooLarge.
  Result<void> feed(std::string_view bytes);
  /// The connection has ended. Errors: kUnavailable if the answer needed more.
  Result<void> end();

  /// Whether status and headers are there, whether the whole answer is.
  bool has_head() const { return state_ != State::kHead; }
  bool done() const { return state_ == State::kDone; }
  /// Whether the connection is good for another request once this is done.
  bool keeps_alive() const { return keeps_alive_; }
  /// Status, headers and so much of the body as has come in and was not taken.
  Response& response() { return response_; }

 private:
  enum class State {
    kHead,
    kSized,      ///< left_ bytes of body are to come.
    kChunkSize,  ///< A line with the size of the next chunk is.
    kChunk,      ///< left_ bytes of a chunk are.
    kChunkEnd,   ///< The line end behind a chunk is.
    kTrailers,   ///< Headers behind the last chunk, and an empty line.
    kUntilEnd,   ///< The body ends with the connection.
    kDone,
  };

  Result<void> step(bool& moved);
  Result<void> read_head(std::string_view head);
  Result<void> choose_body();
  Result<void> read_chunk_size(std::string_view line);
  void take_body();
  /// The line at the front, without its end, taken away; false if it is not complete.
  bool take_line(std::string& line);

  State state_ = State::kHead;
  std::string buffer_;
  std::size_t left_ = 0;
  bool keeps_alive_ = true;
  Response response_;
};

}  // namespace perdure::http
