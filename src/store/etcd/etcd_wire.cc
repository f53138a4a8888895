#include "store/etcd/etcd_wire.h"

#include <limits>

namespace perdure::etcd {
namespace {

namespace pb = etcdserverpb;

void write(const Range& range, pb::RequestOp& to) {
  pb::RangeRequest& request = *to.mutable_request_range();
  request.set_key(range.key);
  request.set_range_end(range.end);
  if (range.limit < static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()))
    request.set_limit(static_cast<std::int64_t>(range.limit));
  request.set_revision(range.revision);
  // Without a sorting the server has them in order as well, and may stop at the limit.
  if (range.direction == Direction::kReverse) request.set_sort_order(pb::RangeRequest::DESCEND);
}

void write(const Put& put, pb::RequestOp& to) {
  to.mutable_request_put()->set_key(put.key);
  to.mutable_request_put()->set_value(put.value);
}

void write(const Delete& erase, pb::RequestOp& to) {
  to.mutable_request_delete_range()->set_key(erase.key);
  to.mutable_request_delete_range()->set_range_end(erase.end);
}

void write(const Compare& compare, pb::Compare& to) {
  to.set_result(pb::Compare::EQUAL);
  to.set_key(compare.key);
  to.set_target(compare.value ? pb::Compare::VALUE : pb::Compare::CREATE);
  if (compare.value)
    to.set_value(*compare.value);
  else
    to.set_create_revision(0);
}

}  // namespace

pb::TxnRequest to_wire(const Txn& txn) {
  pb::TxnRequest request;
  for (const Compare& compare : txn.compares) write(compare, *request.add_compare());
  for (const Op& op : txn.then) std::visit([&](const auto& each) { write(each, *request.add_success()); }, op);
  for (const Op& op : txn.otherwise) std::visit([&](const auto& each) { write(each, *request.add_failure()); }, op);
  return request;
}

KeyValue from_wire(pb::KeyValue& row) {
  return {std::move(*row.mutable_key()), std::move(*row.mutable_value()), row.mod_revision()};
}

TxnAnswer from_wire(pb::TxnResponse& response) {
  TxnAnswer answer{.revision = response.header().revision(), .succeeded = response.succeeded()};
  for (pb::ResponseOp& op : *response.mutable_responses()) {
    RangeAnswer& range = answer.answers.emplace_back();
    if (!op.has_response_range()) continue;
    range.more = op.response_range().more();
    for (pb::KeyValue& row : *op.mutable_response_range()->mutable_kvs()) range.rows.push_back(from_wire(row));
  }
  return answer;
}

}  // namespace perdure::etcd
