#include "http/response_parser.h"

#include <algorithm>
#include <charconv>

namespace perdure::http {
namespace {

constexpr std::size_t kLineMax = 8192;

std::unexpected<Error> not_http(std::string_view what) {
  return fail(ErrorCode::kUnavailable, "the other end does not speak HTTP: " + std::string(what));
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

template <class T>
bool read_number(std::string_view text, T& number, int base) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool has_token(const std::string* list, std::string_view token) {
  if (list == nullptr) return false;
  std::string_view rest = *list;
  while (true) {
    std::size_t comma = rest.find(',');
    if (equal_but_for_case(trimmed(rest.substr(0, comma)), token)) return true;
    if (comma == std::string_view::npos) return false;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<void> ResponseParser::feed(std::string_view bytes) {
  buffer_ += bytes;
  bool moved = true;
  while (moved && state_ != State::kDone) {
    moved = false;
    if (auto stepped = step(moved); !stepped) return stepped;
  }
  if (state_ == State::kHead && buffer_.size() > kHeadMax) return not_http("its headers have no end");
  if (state_ != State::kDone && state_ != State::kHead && buffer_.size() > kLineMax)
    return not_http("a line has no end");
  if (response_.body.size() > kBodyMax)
    return fail(ErrorCode::kTooLarge, "the answer is larger than " + std::to_string(kBodyMax >> 20) + " MiB");
  if (state_ == State::kDone && !buffer_.empty()) keeps_alive_ = false;
  return {};
}

Result<void> ResponseParser::end() {
  keeps_alive_ = false;
  if (state_ == State::kUntilEnd) state_ = State::kDone;
  if (state_ == State::kDone) return {};
  return fail(ErrorCode::kUnavailable, has_head() ? "the connection ended in the middle of the answer"
                                                  : "the connection ended before the answer");
}

bool ResponseParser::take_line(std::string& line) {
  std::size_t end = buffer_.find('\n');
  if (end == std::string::npos) return false;
  line.assign(buffer_, 0, end > 0 && buffer_[end - 1] == '\r' ? end - 1 : end);
  buffer_.erase(0, end + 1);
  return true;
}

void ResponseParser::take_body() {
  std::size_t size = std::min(left_, buffer_.size());
  response_.body.append(buffer_, 0, size);
  buffer_.erase(0, size);
  left_ -= size;
}

Result<void> ResponseParser::step(bool& moved) {
  std::string line;
  switch (state_) {
    case State::kHead: {
      std::size_t end = buffer_.find("\r\n\r\n");
      if (end == std::string::npos) return {};
      std::string head = buffer_.substr(0, end + 2);
      buffer_.erase(0, end + 4);
      moved = true;
      return read_head(head);
    }
    case State::kSized:
      take_body();
      if (left_ == 0) state_ = State::kDone;
      return {};
    case State::kChunk:
      take_body();
      moved = left_ == 0;
      if (moved) state_ = State::kChunkEnd;
      return {};
    case State::kChunkSize:
      moved = take_line(line);
      return moved ? read_chunk_size(line) : Result<void>();
    case State::kChunkEnd:
      moved = take_line(line);
      if (moved && !line.empty()) return not_http("a chunk is longer than it says");
      if (moved) state_ = State::kChunkSize;
      return {};
    case State::kTrailers:
      moved = take_line(line);
      if (moved && line.empty()) state_ = State::kDone;
      return {};
    case State::kUntilEnd:
      response_.body += buffer_;
      buffer_.clear();
      return {};
    case State::kDone:
      return {};
  }
  return {};
}

Result<void> ResponseParser::read_chunk_size(std::string_view line) {
  line = trimmed(line.substr(0, line.find(';')));
  if (!read_number(line, left_, 16)) return not_http("a chunk has no size");
  state_ = left_ == 0 ? State::kTrailers : State::kChunk;
  return {};
}

Result<void> ResponseParser::read_head(std::string_view head) {
  constexpr std::string_view kVersion = "HTTP/1.";
  response_ = {};
  std::string_view first = head.substr(0, head.find("\r\n"));
  if (!first.starts_with(kVersion) || first.size() < kVersion.size() + 5 ||
      !read_number(first.substr(kVersion.size() + 2, 3), response_.status, 10) || response_.status < 100)
    return not_http("the answer does not begin with a status");
  keeps_alive_ = first[kVersion.size()] != '0';
  head.remove_prefix(first.size() + 2);
  while (!head.empty()) {
    std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(line.size() + 2);
    std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return not_http("a header has no name");
    response_.headers.add(std::string(line.substr(0, colon)), std::string(trimmed(line.substr(colon + 1))));
  }
  return choose_body();
}

Result<void> ResponseParser::choose_body() {
  const Headers& headers = response_.headers;
  if (has_token(headers.find("Connection"), "close")) keeps_alive_ = false;
  if (response_.status < 200) {  // 100 Continue and its like: the answer proper is still to come.
    state_ = State::kHead;
    return {};
  }
  const std::string* size = headers.find("Content-Length");
  if (response_.status == 204 || response_.status == 304) {
    state_ = State::kDone;
  } else if (has_token(headers.find("Transfer-Encoding"), "chunked")) {
    state_ = State::kChunkSize;
  } else if (size != nullptr) {
    if (!read_number(std::string_view(*size), left_, 10)) return not_http("its Content-Length is not a number");
    state_ = left_ == 0 ? State::kDone : State::kSized;
  } else {
    state_ = State::kUntilEnd;
    keeps_alive_ = false;
  }
  return {};
}

}  // namespace perdure::http
