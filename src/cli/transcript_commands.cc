// What coding sessions have said.
#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "cli/commands.h"
#include "cli/follow.h"

namespace perdure::cli {
namespace {

/// Characters of what a tool was asked, and of what it answered.
constexpr std::size_t kOutputShown = 200;

OrFailure<void> list_sessions(Context& context, const Arguments& arguments) {
  Target target = {context.space(), "transcripts", "sessions"};
  target.query("project", arguments.maybe("project")).query("status", arguments.maybe("status"));
  return context.print_list(target, arguments,
                            {{"SESSION", "id"},
                             {"STATUS", "status", Style::kState},
                             {"UPDATED", "updated_at"},
                             {"PROJECT", "project"},
                             {"NAME", "name"}});
}

std::string text_of(const Value& value, std::string_view name) {
  const Value* found = value.find(name);
  const std::string* text = found ? found->as_text() : nullptr;
  return text ? *text : "";
}

/// Prints messages for people, one below the other.
class MessagePrinter {
 public:
  explicit MessagePrinter(Context& context) : context_(context), colour_(context.look().colour) {}

  void print(const Value& message) {
    const Value* is_user = message.find("is_user");
    bool user = is_user && is_user->as_bool() && *is_user->as_bool();
    context_.print(painted(user ? "36;1" : "32;1", user ? "user" : "assistant") + "  " +
                   painted("2", text_of(message, "created_at")));
    print_lines(text_of(message, "thinking"), "2");
    print_lines(text_of(message, "body"), "");
    const Value* tools = message.find("tools");
    if (tools && tools->as_list())
      for (const Value& tool : *tools->as_list()) print_tool(tool);
    context_.print("");
  }

 private:
  std::string painted(std::string_view code, const std::string& text) const {
    return colour_ && !code.empty() ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
  }
  void print_lines(const std::string& text, std::string_view code) {
    if (text.empty()) return;
    for (std::size_t at = 0; at <= text.size();) {
      std::size_t end = std::min(text.find('\n', at), text.size());
      context_.print("  " +
                     (end == at ? "" : painted(code, without_controls(std::string_view(text).substr(at, end - at)))));
      at = end + 1;
    }
  }
  void print_tool(const Value& tool) {
    const Value* input = tool.find("input");
    std::string line = "  > " + without_controls(text_of(tool, "name")) + " " + cell_of(input);
    context_.print(painted("33", cut(line, kOutputShown)));
    std::string output = text_of(tool, "output");
    if (!output.empty()) context_.print(painted("2", "    " + without_controls(cut(output, kOutputShown))));
  }

  Context& context_;
  const bool colour_;
};

/// Pages through what comes after a cursor, and moves that on.
class Messages {
 public:
  Messages(Context& context, std::string session)
      : context_(context), session_(std::move(session)), printer_(context) {}

  /// Those behind the last; then those whose time is before it, if some of the first `last` have not been printed.
  OrFailure<void> print_new(std::uint64_t last = 0) {
    if (auto good = print_after(); !good || printed_.size() + gone_ >= last) return good;
    // The stream may be behind what is printed, so it does not say how many are missing.
    auto all = count();
    if (!all) return std::unexpected(std::move(all.error()));
    after_.clear();
    auto good = print_after();
    // A list of things to do was replaced by another, or what was old has gone: nobody has to look for those again.
    if (good) gone_ = *all - std::min<std::uint64_t>(*all, printed_.size());
    return good;
  }

  /// Once more, with what their tools have answered since, those that were printed without.
  OrFailure<void> print_answers() {
    for (auto each = waiting_.begin(); each != waiting_.end();) {
      auto page = fetch(each->before, kAround);
      if (!page) return std::unexpected(std::move(page.error()));
      const Value* items = page->find("items");
      const Value::List* list = items ? items->as_list() : nullptr;
      auto is_it = [&](const Value& message) { return text_of(message, "uuid") == each->uuid; };
      auto found = list ? std::ranges::find_if(*list, is_it) : Value::List::const_iterator();
      bool is_there = list && found != list->end();
      if (is_there && is_waiting(*found)) {
        ++each;
        continue;
      }
      if (is_there) print(*found);
      each = waiting_.erase(each);
    }
    return {};
  }

 private:
  /// A message whose tools have not all answered yet, and the cursor of the one before it.
  struct Waiting {
    std::string uuid, before;
  };
  static constexpr std::size_t kWaitingMax = 50;
  /// Some may have come between a message and what was before it.
  static constexpr std::string_view kAround = "10";

  static bool is_waiting(const Value& message) {
    const Value* tools = message.find("tools");
    const Value::List* list = tools ? tools->as_list() : nullptr;
    auto has_no_output = [](const Value& tool) {
      const Value* output = tool.find("output");
      return !output || output->is_null();
    };
    return list && std::ranges::any_of(*list, has_no_output);
  }
  void print(const Value& message) {
    if (context_.json())
      context_.print(message.to_json());
    else
      printer_.print(message);
  }
  /// How many there have been.
  OrFailure<std::uint64_t> count() {
    auto answer = context_.get({context_.space(), "transcripts", "sessions", session_});
    if (!answer) return std::unexpected(std::move(answer.error()));
    const Value* messages = answer->body.find("messages");
    auto number = messages ? messages->as_integer() : nullptr;
    return number ? static_cast<std::uint64_t>(*number) : 0;
  }

  OrFailure<Value> fetch(const std::string& after, std::string_view limit) {
    Target target = {context_.space(), "transcripts", "sessions", session_, "messages"};
    target.query("limit", std::string(limit));
    if (!after.empty()) target.query("after", after);
    auto answer = context_.get(target);
    if (!answer) return std::unexpected(std::move(answer.error()));
    return std::move(answer->body);
  }

  OrFailure<void> print_after() {
    for (;;) {
      auto page = fetch(after_, "1000");
      if (!page) return std::unexpected(std::move(page.error()));
      const Value* items = page->find("items");
      if (!items || !items->as_list() || items->as_list()->empty()) return {};
      for (const Value& message : *items->as_list()) {
        std::string before = std::exchange(after_, text_of(message, "cursor")), uuid = text_of(message, "uuid");
        if (!printed_.insert(uuid).second) continue;
        print(message);
        if (is_waiting(message)) waiting_.push_back({uuid, before});
        if (waiting_.size() > kWaitingMax) waiting_.pop_front();
      }
      if (const Value* next = page->find("next"); !next || next->is_null()) return {};
    }
  }

  Context& context_;
  const std::string session_;
  MessagePrinter printer_;
  std::string after_;
  /// By uuid.
  std::set<std::string> printed_;
  /// How many of those that there have been are there no more, and were never printed.
  std::uint64_t gone_ = 0;
  /// The last of them.
  std::deque<Waiting> waiting_;
};

OrFailure<void> show_messages(Context& context, const Arguments& arguments) {
  std::string session = arguments.one("SESSION");
  // One connection listens, the other asks.
  Context asking(context.world(), arguments);
  Messages messages(asking, session);
  if (!arguments.has("follow")) return messages.print_new();
  Target target = {context.space(), "stream"};
  target.query("session", session);
  auto show = [&messages](const StreamedEvent& event) -> OrFailure<bool> {
    auto change = Value::from_json(event.data);
    const Value* last = change ? change->find("offset") : nullptr;
    auto number = last ? last->as_integer() : nullptr;
    if (auto good = messages.print_answers(); !good) return std::unexpected(std::move(good.error()));
    if (auto good = messages.print_new(number ? static_cast<std::uint64_t>(*number) : 0); !good)
      return std::unexpected(std::move(good.error()));
    return true;
  };
  // What was there before, and what came while nobody listened, is fetched once one does.
  return Follower(context, target, "", show).run([&messages] { return messages.print_new(); });
}

}  // namespace

std::vector<Command> transcript_commands() {
  return {
      {"sessions",
       kTranscripts,
       "List coding sessions",
       {},
       {{"project", "PATH", "Only of this project"},
        {"status", "STATUS", "Only those that are started, active, idle, permission_needed, done or ended"},
        limit_flag()},
       list_sessions},
      {"messages",
       kTranscripts,
       "Show what was said in a session",
       {{"SESSION", "The id of a session"}},
       {{"follow", "", "Go on with what comes, until interrupted; a message whose tools answer later is shown again"}},
       show_messages},
  };
}

}  // namespace perdure::cli
