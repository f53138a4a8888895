#include "perdure/behaviour.h"

#include "actor/rows.h"
#include "perdure/actor_kind.h"
#include "session/rows.h"

namespace perdure {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

std::string to_hex(BytesView bytes) {
  std::string text;
  for (char c : bytes) {
    auto byte = static_cast<unsigned char>(c);
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

std::optional<Bytes> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  Bytes bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    auto high = kHex.find(text[i]), low = kHex.find(text[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    bytes.push_back(static_cast<char>(high << 4 | low));
  }
  return bytes;
}

}  // namespace

std::string ActorId::to_string() const {
  return space + "/" + kind + "/" + id;
}

Result<void> ActorId::check() const {
  if (auto good = actor::check_short_name(space, "the space"); !good) return good;
  if (auto good = actor::check_short_name(kind, "the kind"); !good) return good;
  if (id == "." || id == "..") return fail(ErrorCode::kInvalidArgument, "the id of an actor cannot be \"" + id + "\"");
  return session::check_name(id, "the id of the actor");
}

std::string From::to_string() const {
  return to_hex(tuple::pack(actor.space, actor.kind, actor.id, seconds, session, number));
}

Result<From> From::parse(std::string_view text) {
  auto bytes = from_hex(text);
  auto parts =
      tuple::unpack_as<std::string, std::string, std::string, std::int64_t, Stamp, std::uint64_t>(bytes.value_or(""));
  if (!bytes || !parts) return fail(ErrorCode::kInvalidArgument, "\"" + printable(text) + "\" names no caller");
  auto& [space, kind, id, seconds, session, number] = *parts;
  return From{{space, kind, id}, seconds, session, number};
}

void Turn::cast(ActorId to, Value message, Duration delay) {
  if (to.space.empty()) to.space = actor_->space;
  casts_.push_back({std::move(to), std::move(message), delay});
}

void Turn::reply(From to, Value reply) {
  replies_.push_back({std::move(to), std::move(reply)});
}

void Turn::refuse(From to, Error error) {
  replies_.push_back({std::move(to), std::unexpected(std::move(error))});
}

Result<Value> Behaviour::upgrade(int from_schema, Value state) {
  (void)state;
  return fail(ErrorCode::kUnsupportedFormat, "the kind has no upgrade from schema " + std::to_string(from_schema));
}

Result<Value> Behaviour::upgrade_of(const ActorId&, int from_schema, Value state) {
  return upgrade(from_schema, std::move(state));
}

namespace internal {

std::optional<std::pair<std::string_view, const Value*>> open_message(const Value& message) {
  const Value::Map* map = message.as_map();
  if (!map || map->size() != 1) return std::nullopt;
  return std::pair<std::string_view, const Value*>(map->begin()->first, &map->begin()->second);
}

Error unknown_message(std::string_view kind, const Value& message, std::string_view known) {
  std::string shown = message.to_json();
  if (shown.size() > 100) shown = shown.substr(0, 100) + "...";
  return {ErrorCode::kInvalidArgument, "the kind " + std::string(kind) + " takes no message " + printable(shown, 120) +
                                           "; a message is a map with one entry, and those it takes are " +
                                           std::string(known)};
}

Error not_taken(std::string_view kind, std::string_view message, std::string_view handler) {
  return {ErrorCode::kInvalidArgument,
          "the kind " + std::string(kind) + " has no " + std::string(handler) + " for " + std::string(message)};
}

}  // namespace internal
}  // namespace perdure
