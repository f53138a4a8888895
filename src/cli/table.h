// Tables of JSON values for people.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/value.h"

namespace perdure::cli {

enum class Style {
  kText,
  kState,  ///< Coloured by what it says: running, paused, dead.
  kRight,  ///< A number.
};

struct Column {
  std::string title;
  /// Where it is in a row: "counts.ready". Alternatives are separated by '|', the first that is there counts.
  std::string path;
  Style style = Style::kText;
};

struct TableLook {
  bool colour = false;
  /// Longer lines are cut; 0 for no limit.
  std::size_t columns = 0;
};

class Table {
 public:
  Table(std::vector<Column> columns, TableLook look) : columns_(std::move(columns)), look_(look) {}
  /// The lines of these rows, under the titles the first time. Later pages keep the widths of earlier ones, or widen.
  std::string page(std::span<const Value> rows);

 private:
  std::string line(const std::vector<std::string>& cells, bool is_title) const;

  std::vector<Column> columns_;
  TableLook look_;
  std::vector<std::size_t> widths_;
};

/// An object as lines of a path and a value: "counts.ready  3". Empty maps and lists are left out.
std::string pairs(const Value& object, TableLook look);

/// A value in a cell: without_controls; nothing and null as "-".
std::string cell_of(const Value* value);
/// `text`, which is UTF-8, without what a terminal would obey: control characters, up to U+009F, are escaped.
std::string without_controls(std::string_view text);
/// The first characters of `text`, `width` with an ellipsis for the rest; all of them for 0.
std::string cut(std::string_view text, std::size_t width);
/// What `path` names in `row`, as Column says; null if it is not there.
const Value* at_path(const Value& row, std::string_view path);

}  // namespace perdure::cli
