#include "sim/testing_node.h"

#include <exception>

#include "base/assert.h"
#include "store/store_access.h"

namespace perdure::testing {

void Node::Impl::run(std::move_only_function<void()> task, std::string_view what) {
  if (!alive()) return;
  // The timeline cannot go on from the middle of a task.
  try {
    task();
  } catch (const std::exception& thrown) {
    world_.violation(std::string(what) + " threw on " + name_ + ": " + thrown.what());
  } catch (...) {
    world_.violation(std::string(what) + " threw on " + name_);
  }
}

void Node::Impl::silence() {
  StoreAccess::impl(store_).mute();
}

void Node::Impl::gone() {
  while (!kept_.empty()) kept_.pop_back();
  node_ = nullptr;
}

Node::Node(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Node::~Node() = default;

int Node::index() const {
  return impl_->index_;
}

int Node::life() const {
  return impl_->life_;
}

const std::string& Node::name() const {
  return impl_->name_;
}

bool Node::alive() const {
  return impl_->alive();
}

Store& Node::store() {
  return impl_->store_;
}

SteadyTime Node::now() const {
  return impl_->world_.now();
}

WallTime Node::wall_now() const {
  check(impl_->node_, "a node that is gone was asked for its wall clock");
  return impl_->node_->scheduler().wall_now();
}

void Node::after(Duration delay, std::move_only_function<void()> task) {
  if (!alive()) return;
  auto& scheduler = impl_->node_->scheduler();
  scheduler.at(scheduler.now() + delay,
               [this, task = std::move(task)]() mutable { impl_->run(std::move(task), "a task of Node::after"); });
}

std::uint64_t Node::random() {
  check(impl_->node_, "a node that is gone was asked for chance");
  return impl_->node_->random()();
}

void Node::note(std::string_view text) {
  impl_->world_.note(impl_->name_, text);
}

void Node::keep(std::shared_ptr<void> thing) {
  if (alive()) impl_->kept_.push_back(std::move(thing));
}

}  // namespace perdure::testing
