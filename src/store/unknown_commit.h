// Unknown outcomes.
//
// Engines that may lose the answer to a commit keep one row per store handle, with the number of the last batch that
// was applied and a fence. A batch is applied only if its number is above the fence, which it then raises to itself;
// finding out about batch n raises the fence to n first, so that n, should it still be on its way, can never be applied
// afterwards.
#pragma once

#include "store/committer.h"

namespace perdure {

struct Committer::BatchRow {
  std::uint64_t applied = 0;
  std::uint64_t fence = 0;

  static Result<BatchRow> read(const Committer& committer, ReadView& view);
  Result<void> write(const Committer& committer, CommitView& view) const;
};

class Committer::Resolver final : public CommitJob {
 public:
  explicit Resolver(Committer& committer) : committer_(committer) {}

  Result<Applied> apply(CommitView& view) override;
  std::span<const std::uint64_t> changed_keys() const override { return {}; }
  void done(Result<void> outcome) override;

 private:
  Committer& committer_;
  bool applied_ = false;
};

}  // namespace perdure
