// /v1/{space}/transcripts
#include "base/rfc3339.h"
#include "http/api.h"
#include "http/bind.h"
#include "http/daemon.h"
#include "http/event_json.h"
#include "http/units.h"
#include "store/report.h"
#include "store/store_access.h"

namespace perdure::http {
namespace {

using transcript::from_ns;
using transcript::Transcripts;

/// Whoever is hooked goes on, whatever became of the hook; the status says whether it is stored.
Answer go_on(const Result<transcript::Taken>& taken) {
  Answer answer = ok(Value::Map{{"continue", true}});
  if (!taken) answer.status = info(taken.error().code).http_status;
  return answer;
}

void take_hook(Daemon& daemon, const CallPtr& call, Done done) {
  Transcripts& transcripts = daemon.node.transcripts();
  const std::string* key = call->header("Idempotency-Key");
  auto hook = transcripts.read(std::move(call->exchange().request().body), key ? *key : "");
  if (const std::string* time = call->header("Perdure-Hook-Time")) {
    if (auto sent = parse_rfc3339(*time)) {
      hook.sent = *sent;
      hook.came = transcript::came_at(*sent, transcripts.clocks(), transcript::kSendingTime);
    } else {
      log(StoreAccess::impl(daemon.node.store()).options(), LogLevel::kWarning, "transcript",
          "the time of a hook is none, and it counts as of now: " + sent.error().message,
          {{"space", call->space()}, {"session", hook.session}});
    }
  }
  transcripts.take_async(call->space(), std::move(hook),
                         [done = std::move(done)](const auto& taken) mutable { done(go_on(taken)); });
}

Response refused(int status) {
  Response response = to_response(Answer{.status = status, .body = Value::Map{{"continue", true}}});
  if (status == 429) response.headers.add("Retry-After", "1");
  return response;
}

Value project_json(const transcript::ProjectRow& row) {
  return Value::Map{{"path", row.path},
                    {"name", transcript::last_component(row.path)},
                    {"created_at", format_time(from_ns(row.created))},
                    {"updated_at", format_time(from_ns(row.updated))}};
}

Value::Map session_json(const std::string& id, const transcript::SessionRow& row) {
  return {{"id", id},
          {"status", transcript::name_of(row.status)},
          {"name", row.name},
          {"project", row.project.empty() ? Value() : Value(row.project)},
          {"transcript_path", row.transcript_path.empty() ? Value() : Value(row.transcript_path)},
          {"favourite", row.favourite},
          {"created_at", format_time(from_ns(row.created))},
          {"updated_at", format_time(from_ns(row.updated))}};
}

Value view_json(const transcript::SessionView& view) {
  Value::Map out = session_json(view.id, view.row);
  Value::List prompts;
  for (const auto& [number, prompt] : view.prompts)
    prompts.push_back(Value::Map{{"id", number_value(number)},
                                 {"text", prompt.text.empty() ? Value() : Value(prompt.text)},
                                 {"created_at", format_time(from_ns(prompt.at))}});
  out.emplace("prompts", std::move(prompts));
  out.emplace("messages", number_value(view.progress.messages));
  out.emplace("read", Value::Map{{"offset", number_value(view.progress.offset)},
                                 {"bytes", number_value(view.progress.bytes_read)}});
  return out;
}

Value tool_json(const transcript::ToolRow& tool, const std::optional<transcript::ResultRow>& result) {
  Value::Map out{{"id", tool.id}, {"name", tool.name}};
  // Numbers that are too large, say, and what is not even JSON, are better than nothing as a text.
  out.emplace("input", Value::from_json(tool.input).value_or(Value(tool.input)));
  out.emplace("output", result ? Value(result->output) : Value());
  out.emplace("is_error", result && result->is_error);
  out.emplace("cut", result && result->cut);
  return out;
}

/// A cursor is the place of a message: its time and its number, so that cursors sort as messages do.
std::string place_text(const transcript::Message& message) {
  auto biased = static_cast<std::uint64_t>(transcript::to_ns(message.at)) ^ (std::uint64_t{1} << 63);
  return format_version({biased}) + format_version({message.number});
}

Value message_json(const transcript::Message& message) {
  const transcript::MessageRow& row = message.row;
  Value::List tools;
  for (std::size_t i = 0; i < row.tools.size(); ++i) tools.push_back(tool_json(row.tools[i], message.results[i]));
  return Value::Map{{"uuid", row.uuid},
                    {"cursor", place_text(message)},
                    {"is_user", row.is_user},
                    {"body", row.body},
                    {"thinking", row.thinking.empty() ? Value() : Value(row.thinking)},
                    {"tools", std::move(tools)},
                    {"cut", row.cut},
                    {"prompt_id", number_value(message.prompt)},
                    {"created_at", format_time(message.at)}};
}

Result<Answer> projects(Node& node, Transaction& txn, const Call& call) {
  auto page = call.page();
  if (!page) return wrong(page);
  auto found = node.transcripts().projects(txn, call.space(), page->after, page->limit);
  Value::List items;
  for (const auto& each : found) items.push_back(project_json(each));
  return list_answer(std::move(items), found.empty() ? "" : next_after(found.size(), *page, found.back().path));
}

Result<Answer> sessions(Node& node, Transaction& txn, const Call& call) {
  auto page = call.page();
  if (!page) return wrong(page);
  if (auto status = call.query("status"); status && !transcript::is_status(*status))
    return fail(
        ErrorCode::kInvalidArgument,
        "status must be started, active, idle, permission_needed, done or ended; it is '" + std::string(*status) + "'");
  Transcripts::SessionQuery query{std::string(call.query("project").value_or("")),
                                  std::string(call.query("status").value_or("")), page->after, page->limit};
  auto found = node.transcripts().sessions(txn, call.space(), query);
  Value::List items;
  for (const auto& [id, row] : found) items.push_back(session_json(id, row));
  return list_answer(std::move(items), found.empty() ? "" : next_after(found.size(), *page, found.back().first));
}

Result<Answer> session(Node& node, Transaction& txn, const Call& call) {
  auto view = node.transcripts().session(txn, call.space(), call.param("id"));
  if (!view) return wrong(view);
  return ok(view_json(*view));
}

Result<Transcripts::Place> parse_place(std::string_view text) {
  if (text.empty()) return Transcripts::Place{};
  auto at = parse_version(text.substr(0, 16));
  auto number = parse_version(text.size() > 16 ? text.substr(16) : "");
  if (!at || !number) return fail(ErrorCode::kInvalidArgument, "'after' is no cursor; use one that was answered");
  return Transcripts::Place{static_cast<std::int64_t>(at->number ^ (std::uint64_t{1} << 63)), number->number};
}

Result<Answer> messages(Node& node, Transaction& txn, const Call& call) {
  auto page = call.page();
  if (!page) return wrong(page);
  auto after = parse_place(page->after);
  if (!after) return wrong(after);
  Transcripts& transcripts = node.transcripts();
  auto found = transcripts.messages(txn, call.space(), call.param("id"), *after, page->limit);
  if (!found) return wrong(found);
  Value::List items;
  for (const auto& each : *found) items.push_back(message_json(each));
  if (found->empty()) return list_answer(std::move(items), "");
  const auto& last = found->back();
  auto more = transcripts.messages(txn, call.space(), call.param("id"), {transcript::to_ns(last.at), last.number}, 1);
  return list_answer(std::move(items), more && !more->empty() ? place_text(last) : "");
}

Result<Answer> remove(Node& node, Transaction& txn, const Call& call) {
  auto removed = node.transcripts().remove(txn, call.space(), call.param("id"));
  if (!removed) return wrong(removed);
  return no_content();
}

Result<Answer> set_favourite(Node& node, Transaction& txn, const Call& call) {
  if (auto set = node.transcripts().set_favourite(txn, call.space(), call.param("id"), true); !set) return wrong(set);
  return session(node, txn, call);
}

Result<Answer> unset_favourite(Node& node, Transaction& txn, const Call& call) {
  if (auto set = node.transcripts().set_favourite(txn, call.space(), call.param("id"), false); !set) return wrong(set);
  return no_content();
}

}  // namespace

std::vector<Route> transcript_routes(Daemon& daemon) {
  Node& node = daemon.node;
  const std::string all = "/v1/{space}/transcripts", one = all + "/sessions/{id}";
  return {
      {"POST", all + "/hooks", Load::kMore,
       Asynchronous{[&daemon](const CallPtr& call, Done done) { take_hook(daemon, call, std::move(done)); }}, true,
       refused},
      {"GET", all + "/projects", Load::kRead, looks(node, projects)},
      {"GET", all + "/sessions", Load::kRead, looks(node, sessions)},
      {"GET", one, Load::kRead, looks(node, session)},
      {"DELETE", one, Load::kLess, changes(node, remove)},
      {"GET", one + "/messages", Load::kRead, looks(node, messages)},
      {"PUT", one + "/favourite", Load::kLess, changes(node, set_favourite)},
      {"DELETE", one + "/favourite", Load::kLess, changes(node, unset_favourite)},
  };
}

}  // namespace perdure::http
