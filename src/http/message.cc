#include "http/message.h"

#include <algorithm>

namespace perdure::http {

bool equal_but_for_case(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

const std::string* Headers::find(std::string_view name) const {
  auto found = std::ranges::find_if(list_, [&](const Header& each) { return equal_but_for_case(each.name, name); });
  return found == list_.end() ? nullptr : &found->value;
}

}  // namespace perdure::http
