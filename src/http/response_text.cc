#include "http/response_text.h"

#include <array>
#include <utility>

namespace perdure::http {

std::string_view reason_of(int status) {
  static constexpr std::pair<int, std::string_view> kReasons[] = {
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {304, "Not Modified"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {412, "Precondition Failed"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {421, "Misdirected Request"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
      {507, "Insufficient Storage"},
  };
  for (const auto& [each, reason] : kReasons)
    if (each == status) return reason;
  return "Unknown";
}

std::string head_text(const Response& response, Body body, Keep keep) {
  std::string out;
  out.reserve(256);
  out.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ").append(reason_of(response.status));
  out.append("\r\n");
  for (const Header& header : response.headers.all())
    out.append(header.name).append(": ").append(header.value).append("\r\n");
  if (body == Body::kChunked)
    out.append("Transfer-Encoding: chunked\r\n");
  else if (response.status != 204 && response.status != 304)
    out.append("Content-Length: ").append(std::to_string(response.body.size())).append("\r\n");
  if (keep == Keep::kClose) out.append("Connection: close\r\n");
  return out.append("\r\n");
}

}  // namespace perdure::http
