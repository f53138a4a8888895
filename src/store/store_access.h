#pragma once

#include "perdure/store.h"
#include "store/store_impl.h"

namespace perdure {

/// For the parts of perdure that are built on the store: what they need of it besides transactions.
struct StoreAccess {
  static StoreImpl& impl(Store& store) { return *store.impl_; }
};

}  // namespace perdure
