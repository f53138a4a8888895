// What the parts of perdure have in common that live on a store and come back to it from timers, watches and answers.
//
// Such a part borrows its store, for handles must not be kept by what only the store's own callbacks keep alive. So
// each use of it comes through the gate: inside, the part and its open store stay; once either is closed, nobody gets
// in, and what comes late does nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "perdure/store.h"
#include "runtime/gate.h"
#include "runtime/scheduler.h"
#include "store/store_access.h"

namespace perdure {

/// Thread-safe. `Self` derives from it, and is held by a shared_ptr. Before the last handle of the store that it was
/// made with goes, `Self` closes the gate.
template <class Self>
class StorePart : public std::enable_shared_from_this<Self> {
 public:
  Scheduler& scheduler() { return scheduler_; }
  /// Keeps this object and its open store from going away; empty once either is closed. `died` says whether that is
  /// because the process is a simulated one that has died.
  Gate::Use enter(bool* died = nullptr);
  /// A task that runs only if this is still there, inside of the gate.
  Task guarded(Task task);
  Executor::TimerId at(SteadyTime when, Task task) { return scheduler_.at(when, guarded(std::move(task))); }
  /// Cancels a timer, unless this is gone by then, and with it perhaps the scheduler.
  Task canceller(Executor::TimerId timer) {
    return guarded([this, timer] { scheduler_.cancel(timer); });
  }
  /// A transaction whose answer finds this object alive. It is always answered, with closed_error in this very call if
  /// this is going away; but never in a simulated process that has died. No lock may be held.
  template <class Body, class Answered>
  void transact(Body body, Answered answered, const TransactOptions& options);
  /// The same for calls that block, with the errors of may_block.
  template <class Body>
  auto transact_now(Body body, const TransactOptions& options);
  template <class Body>
  auto read_now(Body body);
  /// Errors: kInvalidArgument where a blocking call would wait for itself.
  Result<void> may_block();
  /// The last handle goes: nobody gets in any more, and those who are inside are waited for, where that is possible.
  void abandon();
  /// What is answered to those who come too late.
  Error closed_error() const { return {ErrorCode::kClosed, name_ + " are closed"}; }

 protected:
  /// Borrowed: used only inside of the gate.
  Store store_;
  /// Lives as long as the store is open.
  Scheduler& scheduler_;
  Gate gate_;

 private:
  /// Only Self can be made of it.
  friend Self;
  /// `name` is for errors, as in "the actors of this node".
  StorePart(Store& store, std::string name)
      : store_(StoreAccess::borrow(store)), scheduler_(StoreAccess::impl(store_).scheduler()), name_(std::move(name)) {}
  ~StorePart() = default;

  const std::string name_;
};

template <class Self>
Gate::Use StorePart<Self>::enter(bool* died) {
  struct Owner {
    std::shared_ptr<Self> self;
    std::optional<StoreImpl::Use> store;
  };
  auto owner = std::make_shared<Owner>(this->shared_from_this());
  // First the gate: once it is closed, the store may be gone.
  auto inside = gate_.enter(owner);
  if (!inside) return {};
  auto store = StoreAccess::impl(store_).use();
  if (!store && died) *died = StoreAccess::impl(store_).muted();
  if (!store) return {};
  owner->store.emplace(std::move(*store));
  return inside;
}

template <class Self>
Task StorePart<Self>::guarded(Task task) {
  return [weak = this->weak_from_this(), task = std::move(task)]() mutable {
    auto self = weak.lock();
    if (!self) return;
    if (auto use = self->enter()) task();
  };
}

template <class Self>
template <class Body, class Answered>
void StorePart<Self>::transact(Body body, Answered answered, const TransactOptions& options) {
  using R = typename internal::BodyResult<std::invoke_result_t<Body&, Transaction&>>::Value;
  bool died = false;
  auto use = enter(&died);
  if (!use) {
    if (!died) answered(Result<R>(std::unexpected(closed_error())), Receipt{});
    return;
  }
  store_.transact_async(
      std::move(body),
      [use = std::move(use), answered = std::move(answered)](auto result, Receipt receipt) mutable {
        answered(std::move(result), receipt);
      },
      options);
}

template <class Self>
template <class Body>
auto StorePart<Self>::transact_now(Body body, const TransactOptions& options) {
  using R = typename internal::BodyResult<std::invoke_result_t<Body&, Transaction&>>::Value;
  auto use = enter();
  if (!use) return Result<R>(std::unexpected(closed_error()));
  if (auto allowed = may_block(); !allowed) return Result<R>(std::unexpected(std::move(allowed.error())));
  return store_.transact(std::move(body), options);
}

template <class Self>
template <class Body>
auto StorePart<Self>::read_now(Body body) {
  return transact_now([&body](Transaction& txn) { return body(static_cast<Reader&>(txn)); }, {});
}

template <class Self>
Result<void> StorePart<Self>::may_block() {
  if (auto use = enter(); use && StoreAccess::impl(store_).must_not_block())
    return fail(ErrorCode::kInvalidArgument,
                "a blocking call was made in a callback of the store, which would wait for itself; use the "
                "asynchronous form, or the one that takes a transaction with Store::transact_async");
  return {};
}

template <class Self>
void StorePart<Self>::abandon() {
  bool may_wait = false;
  if (auto use = enter()) may_wait = !StoreAccess::impl(store_).must_not_block();
  gate_.close();
  if (may_wait) gate_.wait_until_empty();
}

}  // namespace perdure
