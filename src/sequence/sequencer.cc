// The public class, on top of SequencerImpl.
#include "perdure/sequencer.h"

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
  // Shared, because who tells may come when nobody waits any more.
  auto ready = std::make_shared<Latch>();
  impl_->when_ready([ready] { ready->set(); });
  return ready->wait_for(timeout);
}

SequencerStatus Sequencer::status() const {
  return impl_->status();
}

Result<void> Sequencer::close(Duration grace) {
  return impl_->close(grace);
}

}  // namespace perdure
