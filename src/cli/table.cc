#include "cli/table.h"

#include <algorithm>
#include <array>

namespace perdure::cli {
namespace {

constexpr std::string_view kReset = "\x1b[0m", kBold = "\x1b[1m", kDim = "\x1b[2m";

std::string_view colour_of(std::string_view state) {
  struct Row {
    std::string_view state, colour;
  };
  static constexpr std::array kColours = {
      Row{"ready", "\x1b[32m"},   Row{"run", "\x1b[32m"},       Row{"completed", "\x1b[32m"},
      Row{"running", "\x1b[36m"}, Row{"waiting", "\x1b[36m"},   Row{"scheduled", "\x1b[34m"},
      Row{"paused", "\x1b[33m"},  Row{"pause", "\x1b[33m"},     Row{"blocked", "\x1b[33m"},
      Row{"block", "\x1b[33m"},   Row{"cancelled", "\x1b[33m"}, Row{"dead", "\x1b[31m"},
      Row{"dropped", "\x1b[31m"}, Row{"failed", "\x1b[31m"},
  };
  auto found = std::ranges::find(kColours, state, &Row::state);
  return found == kColours.end() ? std::string_view() : found->colour;
}

bool continues(char c) {
  return (c & 0xc0) == 0x80;
}

std::size_t width_of(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues));
}

const Value* at_plain_path(const Value& row, std::string_view path) {
  const Value* at = &row;
  while (at != nullptr && !path.empty()) {
    std::size_t dot = path.find('.');
    at = at->find(path.substr(0, dot));
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  }
  return at;
}

void flatten(const Value& value, const std::string& path, std::vector<std::pair<std::string, const Value*>>& out) {
  const Value::Map* map = value.as_map();
  if (map == nullptr || path == "value" || path == "state" || path == "payload" || path == "result") {
    bool empty_list = value.is_list() && value.as_list()->empty();
    if (!empty_list) out.emplace_back(path, &value);
    return;
  }
  for (const auto& [key, inner] : *map) flatten(inner, path.empty() ? key : path + "." + key, out);
}

}  // namespace

std::string without_controls(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  auto byte_at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = byte_at(i);
    // Those from U+0080 to U+009F have two bytes.
    bool is_late = byte == 0xc2 && byte_at(i + 1) >= 0x80 && byte_at(i + 1) <= 0x9f;
    if (is_late) byte = byte_at(++i);
    if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f || is_late) {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string cut(std::string_view text, std::size_t width) {
  if (width_of(text) <= width || width == 0) return std::string(text);
  std::size_t end = 0, seen = 0;
  while (end < text.size() && (seen < width || continues(text[end]))) {
    if (!continues(text[end]) && seen++ == width - 1) break;
    ++end;
  }
  return std::string(text.substr(0, end)) + "…";
}

const Value* at_path(const Value& row, std::string_view path) {
  while (true) {
    std::size_t bar = path.find('|');
    const Value* found = at_plain_path(row, path.substr(0, bar));
    if ((found != nullptr && !found->is_null()) || bar == std::string_view::npos) return found;
    path.remove_prefix(bar + 1);
  }
}

std::string cell_of(const Value* value) {
  if (value == nullptr || value->is_null()) return "-";
  if (const std::string* text = value->as_text()) return without_controls(*text);
  return without_controls(value->to_json());
}

std::string Table::line(const std::vector<std::string>& cells, bool is_title) const {
  std::string out;
  std::size_t used = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    bool last = i + 1 == cells.size();
    std::string text = cells[i];
    if (last && look_.columns > used) text = cut(text, look_.columns - used);
    std::size_t width = width_of(text);
    std::string pad(width < widths_[i] ? widths_[i] - width : 0, ' ');
    if (look_.colour) {
      std::string_view colour = columns_[i].style == Style::kState && !is_title ? colour_of(text) : "";
      if (is_title) colour = kBold;
      if (!colour.empty()) text = std::string(colour) + text + std::string(kReset);
    }
    bool right = columns_[i].style == Style::kRight;
    out += right ? pad + text : last ? text : text + pad;
    if (!last) out += "  ";
    used += std::max(width, widths_[i]) + 2;
  }
  while (out.ends_with(' ')) out.pop_back();
  return out + "\n";
}

std::string Table::page(std::span<const Value> rows) {
  if (rows.empty()) return "";
  bool first = widths_.empty();
  widths_.resize(columns_.size());
  std::vector<std::vector<std::string>> lines;
  if (first) {
    lines.emplace_back();
    for (const Column& column : columns_) lines.back().push_back(column.title);
  }
  for (const Value& row : rows) {
    lines.emplace_back();
    for (const Column& column : columns_) lines.back().push_back(cell_of(at_path(row, column.path)));
  }
  for (const auto& cells : lines)
    for (std::size_t i = 0; i < cells.size(); ++i) widths_[i] = std::max(widths_[i], width_of(cells[i]));
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) out += line(lines[i], first && i == 0);
  return out;
}

std::string pairs(const Value& object, TableLook look) {
  std::vector<std::pair<std::string, const Value*>> found;
  flatten(object, "", found);
  std::size_t width = 0;
  for (const auto& [path, value] : found) width = std::max(width, width_of(path));
  std::string out;
  for (const auto& [path, value] : found) {
    std::string text = cell_of(value);
    std::string name = without_controls(path);
    std::string pad(width - width_of(path) + 2, ' ');
    if (look.colour) {
      std::string_view colour = colour_of(text);
      if (!colour.empty()) text = std::string(colour) + text + std::string(kReset);
      name = std::string(kDim) + name + std::string(kReset);
    }
    out += name + pad + text + "\n";
  }
  return out;
}

}  // namespace perdure::cli
