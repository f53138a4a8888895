// Parameters and results in PostgreSQL's binary form: nothing is escaped, and every byte may occur.
#pragma once

#include <libpq-fe.h>

#include <list>
#include <memory>
#include <span>
#include <vector>

#include "perdure/bytes.h"

namespace perdure::postgres {

/// What stands for $1, $2 and so on. What `bytes` is given must outlive it; arrays are copied.
class Parameters {
 public:
  Parameters() = default;
  Parameters(Parameters&&) noexcept = default;
  Parameters& operator=(Parameters&&) noexcept = default;
  Parameters& number(std::uint64_t value);
  Parameters& bytes(BytesView value);
  Parameters& null();
  Parameters& bytes_array(std::span<const BytesView> values);
  Parameters& number_array(std::span<const std::uint64_t> values);

  int count() const { return static_cast<int>(values_.size()); }
  const char* const* values() const { return values_.data(); }
  const int* lengths() const { return lengths_.data(); }
  const int* formats() const { return formats_.data(); }

 private:
  Parameters& add(const char* value, std::size_t size);
  Parameters& own(Bytes value);

  std::list<Bytes> owned_;  // Whose elements stay where they are, also when it is moved.
  std::vector<const char*> values_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
};

/// The answer to one statement. Views live as long as it does.
class Answer {
 public:
  explicit Answer(PGresult* result) : result_(result, PQclear) {}
  const PGresult* get() const { return result_.get(); }
  int rows() const { return PQntuples(result_.get()); }
  bool is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column) == 1; }
  BytesView bytes(int row, int column) const;
  /// Of a bigint or an integer; 0 for anything else.
  std::uint64_t number(int row, int column) const;
  bool truth(int row, int column) const { return bytes(row, column) == BytesView("\1", 1); }

 private:
  std::unique_ptr<PGresult, void (*)(PGresult*)> result_;
};

}  // namespace perdure::postgres
