// The public class, on top of SequencerImpl.
#include "perdure/sequencer.h"

#include <atomic>

#include "runtime/latch.h"
#include "sequence/sequencer_impl.h"

namespace perdure {

Result<Sequencer> Sequencer::open(Store store, SequencerParams params, std::shared_ptr<SeqStorage> storage) {
  auto impl = SequencerImpl::open(std::move(store), std::move(params), std::move(storage));
  if (!impl) return std::unexpected(std::move(impl.error()));
  return Sequencer(std::move(*impl));
}

Sequencer::Sequencer(Sequencer&&) noexcept = default;
Sequencer& Sequencer::operator=(Sequencer&&) noexcept = default;
Sequencer::~Sequencer() = default;

Result<LogOffset> Sequencer::start(WorkspaceKind kind, WorkspaceId workspace) {
  return impl_->start(kind, workspace);
}

Result<Number> Sequencer::next(SeqId seq) {
  return impl_->next(seq);
}

void Sequencer::next_async(SeqId seq, std::move_only_function<void(Result<Number>)> done) {
  impl_->next(seq, std::move(done));
}

void Sequencer::flush() {
  impl_->flush();
}

void Sequencer::actualize() {
  impl_->actualize();
}

void Sequencer::when_ready(std::move_only_function<void()> ready) {
  impl_->when_ready(std::move(ready));
}

bool Sequencer::wait_ready(Duration timeout) {
  if (!impl_->may_block()) return false;
  // Shared, because who tells may come when nobody waits any more; over also when it is dropped.
  struct Waiter {
    Latch over;
    std::atomic<bool> ready = false;
  };
  auto waiter = std::make_shared<Waiter>();
  std::shared_ptr<void> dropped(nullptr, [waiter](void*) { waiter->over.set(); });
  impl_->when_ready([waiter, dropped = std::move(dropped)] { waiter->ready = true; });
  return waiter->over.wait_for(timeout) && waiter->ready;
}

SequencerStatus Sequencer::status() const {
  return impl_->status();
}

Result<void> Sequencer::close(Duration grace) {
  return impl_->close(grace);
}

}  // namespace perdure
