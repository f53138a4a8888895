#pragma once

#include "perdure/store.h"
#include "store/store_impl.h"

namespace perdure {

/// For the parts of perdure that are built on the store: what they need of it besides transactions.
struct StoreAccess {
  static StoreImpl& impl(Store& store) { return *store.impl_; }
  /// A handle that does not keep the store open: for what somebody else sees to.
  static Store borrow(Store& store) {
    return Store(std::shared_ptr<StoreImpl>(std::shared_ptr<void>(), store.impl_.get()));
  }
};

}  // namespace perdure
