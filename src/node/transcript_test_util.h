// A node with transcripts: hooks that are sent, files that grow, and what the store has of them.
#pragma once

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>

#include "node/node_fixture.h"
#include "perdure/changes.h"
#include "store/store_test_util.h"
#include "transcript/run.h"

namespace perdure::transcript {

namespace fs = std::filesystem;
using Fields = std::map<std::string, std::string>;
using Texts = std::vector<std::string>;

inline std::string quoted(const std::string& text) {
  return Value(text).to_json();
}

class TranscriptNode : public NodeFixture {
 protected:
  TranscriptNode() {
    std::string made = fs::canonical(::testing::TempDir()).string() + "/transcript-node-XXXXXX";
    directory = ::mkdtemp(made.data());
  }
  ~TranscriptNode() override {
    node.reset();
    fs::remove_all(directory);
  }
  void SetUp() override {
    NodeOptions options{.store = fresh_store_url()};
    options.store_options.clock = std::make_shared<TestClock>(kStart);
    options.store_options.changes_kept = std::chrono::hours(24 * 365);
    options.store_options.log = [this](const LogRecord& record) {
      if (record.component != "transcript") return;
      log.note(std::string(record.message));
      if (on_log) on_log();
    };
    options.transcripts.roots = {directory};
    node = open(std::move(options));
    ASSERT_TRUE(node);
    // It begins with whoever opens it first.
    ASSERT_TRUE(Changes::open(node->store()));
  }

  Transcripts& transcripts() { return node->transcripts(); }
  std::string path(const std::string& session = "s") const { return directory + "/" + session + ".jsonl"; }

  // Hooks.

  /// Sends one as it is; the id is what it is taken once by.
  Result<Taken> send(const std::string& text, const std::string& id = "", const std::string& space = "default") {
    std::promise<Result<Taken>> taken;
    transcripts().take_async(space, transcripts().read(text, id),
                             [&](Result<Taken> done) { taken.set_value(std::move(done)); });
    return taken.get_future().get();
  }
  /// Of the session "s" of the project /users/me/shop, with its transcript; an empty field is left out.
  std::string hook_text(const std::string& type, const Fields& fields = {}) {
    Fields all = {{"hook_event_name", type}, {"session_id", "s"}, {"cwd", "/users/me/shop"}};
    for (const auto& [name, value] : fields) all[name] = value;
    if (!all.contains("transcript_path")) all["transcript_path"] = path(all["session_id"]);
    Value::Map map;
    for (const auto& [name, value] : all)
      if (!value.empty()) map.emplace(name, value);
    return Value(std::move(map)).to_json();
  }
  void hook(const std::string& type, const Fields& fields = {}) {
    auto taken = send(hook_text(type, fields));
    ASSERT_TRUE(taken) << to_string(taken.error());
    EXPECT_EQ(*taken, Taken::kNew);
  }

  /// One that was kept in the spool since it came, and is taken now.
  void late_hook(const std::string& type, WallTime came, const Fields& fields = {}) {
    Hook late = transcripts().read(hook_text(type, fields), "");
    late.came = came;
    auto taken = transcripts().take("default", {late});
    ASSERT_TRUE(taken) << to_string(taken.error());
  }

  // Files.

  static void append(const std::string& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::app) << bytes;
  }
  static void write(const std::string& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }
  /// A line, `at` so long after the start of the test.
  static std::string line(const std::string& type, const std::string& uuid, const std::string& content, Duration at) {
    return R"({"type":")" + type + R"(","uuid":")" + uuid + R"(","timestamp":")" + format_rfc3339(kStart + at) +
           R"(","message":{"role":")" + type + R"(","content":)" + content + "}}\n";
  }
  static std::string user(const std::string& uuid, const std::string& text, Duration at = 1s) {
    return line("user", uuid, quoted(text), at);
  }
  static std::string assistant(const std::string& uuid, const std::string& text, Duration at = 1s) {
    return line("assistant", uuid, R"([{"type":"text","text":)" + quoted(text) + "}]", at);
  }

  // Time, and what is there.

  /// What the worker does with a job, for handlers that stand in for it. A run asks for the time before it stores.
  Result<Value> run_at(Job& job, RunClock now, const ReadingTimes& times = {1h, 1h, 1h}) {
    return run(node->store(), job, {node->debouncers(), {directory}, times, std::move(now), [](auto&, auto&) {}});
  }

  void advance(Duration by) {
    auto now = node->advance(by);
    ASSERT_TRUE(now) << to_string(now.error());
  }
  std::optional<SessionView> session(const std::string& id = "s", const std::string& space = "default") {
    auto found = node->store().read([&](Reader& reader) { return transcripts().session(reader, space, id); });
    return found ? std::optional(std::move(*found)) : std::nullopt;
  }
  std::string status(const std::string& id = "s") {
    auto found = session(id);
    return found ? std::string(name_of(found->row.status)) : "gone";
  }
  std::vector<Message> messages(const std::string& id = "s", const std::string& space = "default") {
    std::vector<Message> all;
    for (Transcripts::Place after;;) {
      auto page =
          node->store().read([&](Reader& reader) { return transcripts().messages(reader, space, id, after, 1'000); });
      if (!page || page->empty()) return all;
      after = {to_ns(page->back().at), page->back().number};
      std::ranges::move(*page, std::back_inserter(all));
    }
  }
  Texts bodies(const std::string& id = "s", const std::string& space = "default") {
    Texts all;
    for (const Message& message : messages(id, space)) all.push_back(message.row.body);
    return all;
  }
  Texts prompts(const std::string& id = "s") {
    Texts all;
    if (auto found = session(id))
      for (const auto& [n, prompt] : found->prompts) all.push_back(prompt.text);
    return all;
  }
  Texts session_ids(const Transcripts::SessionQuery& query = {}) {
    auto found = node->store().read([&](Reader& reader) { return transcripts().sessions(reader, "default", query); });
    Texts all;
    for (const auto& [id, row] : *found) all.push_back(id);
    return all;
  }
  /// What the store has below a key of perdure's own.
  std::vector<Row> rows(const Bytes& prefix) {
    auto found = node->store().read([&](Reader& reader) {
      SystemAccess access(reader);
      auto range = reader.get_range(tuple::extensions(prefix));
      return std::vector<Row>(range.begin(), range.end());
    });
    return *found;
  }
  /// The texts of the hooks that the session has, whole.
  Texts hooks(const std::string& id = "s") {
    auto found = session(id);
    return found ? hooks_of(found->row.number) : Texts();
  }
  /// 0 for those of nobody.
  Texts hooks_of(std::uint64_t number) {
    Texts all;
    Bytes prefix = hooks_key(data_key("default", number));
    for (const Row& row : rows(prefix)) {
      auto place = tuple::unpack_after<std::uint64_t, std::uint64_t>(prefix, row.key);
      if (std::get<1>(*place) == 0)
        all.push_back(std::string(decode<HookRow>(row.value)->text.bytes));
      else
        all.back() += row.value;
    }
    return all;
  }
  /// Those of sessions: "active s shop", and how many messages there are more, up to which.
  Texts changes() {
    auto feed = Changes::open(node->store());
    Texts all;
    for (std::string cursor;;) {
      auto page = feed->read({.after = cursor, .limit = 1'000});
      for (const Change& change : page->changes) {
        if (change.type != "session") continue;
        std::string what = change.state + " " + change.id + " " + change.name;
        if (change.count > 0) what += " +" + std::to_string(change.count) + " to " + std::to_string(*change.offset);
        all.push_back(what + " at " + format_rfc3339(change.at).substr(5, 14));
      }
      cursor = page->next;
      if (!page->more) return all;
    }
  }
  template <class F>
  void change(F body) {
    auto done = node->store().transact([&](Transaction& txn) {
      SystemAccess access(txn);
      return body(txn);
    });
    ASSERT_TRUE(done) << to_string(done.error());
  }
  void favourite(const std::string& id, bool on) {
    change([&](Transaction& txn) { return transcripts().set_favourite(txn, "default", id, on); });
  }
  void remove(const std::string& id) {
    change([&](Transaction& txn) { return transcripts().remove(txn, "default", id); });
  }

  std::string directory;
  Diary log, diary;
  /// Called with each entry of the log.
  std::function<void()> on_log;
  std::unique_ptr<Node> node;
};

}  // namespace perdure::transcript
