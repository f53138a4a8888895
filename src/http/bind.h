// Handlers of one node, from plain functions of it.
#pragma once

#include <string>
#include <utility>

#include "http/call.h"
#include "node/node.h"

namespace perdure::http {

/// `run` takes the node, the transaction and the call.
template <class F>
InTransaction looks(Node& node, F run) {
  return {[&node, run](Transaction& txn, const Call& call) -> Result<Answer> { return run(node, txn, call); }};
}
/// A change that is quick and waits for nothing. What ends work, or is an operator's, may use the last of the disk.
template <class F>
InTransaction changes(Node& node, F run, Reserve reserve = Reserve::kMayUse) {
  return {[&node, run](Transaction& txn, const Call& call) -> Result<Answer> { return run(node, txn, call); },
          perdure::Body::kShort, reserve};
}
template <class F>
Asynchronous waits(Node& node, F run, Asynchronous::Key key = Asynchronous::Key::kKeptAfter) {
  return {[&node, run](CallPtr call, Done done) { run(node, call, std::move(done)); }, key};
}
template <class F>
Blocking blocks(Node& node, F run) {
  return {[&node, run](const Call& call) -> Result<Answer> { return run(node, call); }};
}

/// `return wrong(result)`: its error, as that of another type.
template <class T>
std::unexpected<Error> wrong(Result<T>& result) {
  return std::unexpected(std::move(result.error()));
}

/// Where the next page begins, if there is one: `items` are as many as were asked for.
inline std::string next_after(std::size_t items, const Call::Page& page, const std::string& last) {
  return items == page.limit ? last : std::string();
}

}  // namespace perdure::http
