// Transcripts: how fast lines become entries, beside simdjson's own loop over the same file, which looks at two members
// of each line and keeps nothing: with the file in memory, or loaded as a whole each time. A million bytes are one
// operation, so the rates are MB/s. And what `perdure hook` takes as a whole process.
#include <simdjson.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <thread>

#include "child.h"
#include "harness.h"
#include "node/node.h"
#include "transcript/entry.h"
#include "transcript/lines.h"

namespace perdure::bench {
namespace {

using transcript::Entry;

constexpr std::uint64_t kFileBytes = 1'000'000'000;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "bench: %s\n", why.c_str());
  std::exit(1);
}

/// Writes lines as a session does: a few prompts, much thinking, calls of tools, and their outputs twice.
class Session {
 public:
  /// The lines of one turn, about 40 kB.
  std::string turn() {
    std::string out = user("\"" + prose(200) + "\"", "");
    for (int step = 0; step < 6; ++step) {
      out +=
          assistant(R"({"type":"thinking","thinking":")" + prose(800) + R"(","signature":")" + letters(600) + R"("})");
      out += assistant(R"({"type":"text","text":")" + prose(400) + R"("})");
      std::string call = "toolu_" + letters(24);
      out += assistant(R"({"type":"tool_use","id":")" + call + R"(","name":"Edit","input":{"file_path":"/src/a.cc",)" +
                       R"("old_string":")" + code(500) + R"(","new_string":")" + code(700) + R"("}})");
      std::string output = code(step == 5 ? 12'000 : 1'500);
      out += user(R"([{"tool_use_id":")" + call + R"(","type":"tool_result","content":")" + output + R"("}])",
                  R"("toolUseResult":{"stdout":")" + output + R"(","stderr":"","interrupted":false,"lines":[1,2,3]},)");
    }
    return out + R"({"type":"file-history-snapshot","messageId":"x","snapshot":{"trackedFileBackups":{}}})" + "\n";
  }
  std::uint64_t messages() const { return messages_; }

 private:
  std::string letters(std::size_t count) {
    std::string out(count, ' ');
    for (char& c : out) c = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"[random_() % 64];
    return out;
  }
  std::string text_of(std::size_t count, std::span<const std::string_view> words) {
    std::string out;
    while (out.size() < count) out += words[random_() % words.size()];
    return out;
  }
  std::string prose(std::size_t count) {
    static constexpr std::array<std::string_view, 12> kWords = {"the ",     "queue ", "is ",         "written ",
                                                                "before ",  "it’s ",  "answered, ",  "so ",
                                                                "nothing ", "gets ",  "lost.\\n\\n", "and "};
    return text_of(count, kWords);
  }
  std::string code(std::size_t count) {
    static constexpr std::array<std::string_view, 9> kWords = {"  if (found == nullptr) ",
                                                               "return std::nullopt;\\n",
                                                               "\\tconst auto& value = ",
                                                               "table.at(\\\"key\\\");\\n",
                                                               "}\\n\\n",
                                                               "for (std::size_t i = 0; i < size; ++i) {\\n",
                                                               "// What is written is what is read.\\n",
                                                               "total += part; ",
                                                               "\\n"};
    return text_of(count, kWords);
  }
  std::string head() {
    ++messages_;
    return R"({"parentUuid":")" + letters(36) + R"(","isSidechain":false,"userType":"external","cwd":"/src/project",)" +
           R"("sessionId":"0b9a2f6e-7c1d-4a53-9f0e-3d2c1b0a9f8e","version":"2.0.1","gitBranch":"main",)";
  }
  std::string tail() { return R"("uuid":")" + letters(36) + R"(","timestamp":"2026-01-31T08:15:00.250Z"})" + "\n"; }
  std::string user(const std::string& content, const std::string& more) {
    return head() + R"("type":"user","message":{"role":"user","content":)" + content + "}," + more + tail();
  }
  std::string assistant(const std::string& item) {
    return head() + R"("message":{"model":"a","id":"msg","type":"message","role":"assistant","content":[)" + item +
           R"(],"stop_reason":null,"usage":{"input_tokens":4,"cache_read_input_tokens":18231,"output_tokens":312}},)" +
           R"("requestId":"req","type":"assistant",)" + tail();
  }

  std::mt19937_64 random_{20260131};
  std::uint64_t messages_ = 0;
};

struct Transcript {
  std::string path;
  std::uint64_t bytes = 0, messages = 0;
};

Transcript write_transcript(const std::string& directory) {
  Transcript made{.path = std::filesystem::canonical(directory).string() + "/transcript.jsonl"};
  std::ofstream file(made.path, std::ios::binary | std::ios::trunc);
  Session session;
  while (made.bytes < kFileBytes) {
    std::string turn = session.turn();
    file << turn;
    made.bytes += turn.size();
  }
  made.messages = session.messages();
  if (!file.flush()) give_up("the transcript could not be written");
  return made;
}

/// Runs `once` over the whole file until the time is over. The first run is for the caches.
template <class Once>
Sample measure(const Settings& settings, const Transcript& transcript, Once once) {
  once();
  Sample sample;
  auto start = Clock::now();
  auto cpu = cpu_time();
  while (sample.elapsed < settings.duration) {
    once();
    sample.operations += transcript.bytes / 1'000'000;
    sample.elapsed = Clock::now() - start;
  }
  sample.cpu = cpu_time() - cpu;
  return sample;
}

void bench_lines(const Settings& settings, const Transcript& transcript) {
  const std::string name = "parse/lines";
  if (!settings.wants(name)) return;
  report(settings, name, [&] {
    return measure(settings, transcript, [&] {
      auto file = transcript::open_transcript(transcript.path, {settings.directory});
      if (!file) give_up(file.error().message);
      transcript::LineReader lines(std::move(*file), {});
      transcript::EntryReader entries;
      std::uint64_t messages = 0;
      while (true) {
        auto line = lines.next();
        if (!line) give_up(line.error().message);
        if (!*line) break;
        messages += entries.read(**line).kind == Entry::Kind::kMessage;
      }
      if (messages != transcript.messages || lines.bytes_read() != transcript.bytes) give_up("messages were lost");
    });
  });
}

void iterate_many(const simdjson::padded_string& json, const Transcript& transcript) {
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document_stream stream;
  if (parser.iterate_many(json).get(stream)) give_up("the transcript cannot be parsed");
  std::uint64_t messages = 0;
  for (auto document : stream) {
    std::string_view type, uuid;
    if (document["type"].get(type)) give_up("a line has no type");
    messages += document["uuid"].get(uuid) == simdjson::SUCCESS && type != "system" && uuid.size() == 36;
  }
  if (messages != transcript.messages) give_up("messages were lost");
}

simdjson::padded_string load(const Transcript& transcript) {
  simdjson::padded_string json;
  if (simdjson::padded_string::load(transcript.path).get(json)) give_up("the transcript cannot be loaded");
  return json;
}

/// With the file in memory already, and with loading it.
void bench_iterate_many(const Settings& settings, const Transcript& transcript) {
  const std::string name = "parse/iterate_many", with_load = "parse/load+iterate_many";
  if (settings.wants(name))
    report(settings, name, [&] {
      simdjson::padded_string json = load(transcript);
      return measure(settings, transcript, [&] { iterate_many(json, transcript); });
    });
  if (settings.wants(with_load))
    report(settings, with_load,
           [&] { return measure(settings, transcript, [&] { iterate_many(load(transcript), transcript); }); });
}

/// A node on a new store that takes in a transcript.
class Taking {
 public:
  explicit Taking(const Settings& settings) : directory_(settings.directory + "/store") {
    std::filesystem::remove_all(directory_);
    NodeOptions options{.store = "lmdb:" + directory_};
    options.transcripts.roots = {std::filesystem::canonical(settings.directory).string()};
    options.transcripts.marker = *marker_preset(Duration::zero());
    auto node = Node::open(std::move(options));
    if (!node) give_up(node.error().message);
    node_ = std::move(*node);
  }
  ~Taking() {
    node_.reset();
    std::filesystem::remove_all(directory_);
  }
  Taking(const Taking&) = delete;
  Taking& operator=(const Taking&) = delete;

  void hook(const std::string& session, const std::string& path) {
    Value::Map event{{"session_id", session}, {"hook_event_name", "UserPromptSubmit"}, {"transcript_path", path}};
    auto& transcripts = node_->transcripts();
    auto taken = transcripts.take("default", {transcripts.read(Value(std::move(event)).to_json(), "")});
    if (!taken) give_up(taken.error().message);
  }
  /// Until so much of its transcript was read, with a look at the memory now and then.
  void await(const std::string& session, std::uint64_t bytes) {
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
      auto view =
          node_->store().read([&](Reader& reader) { return node_->transcripts().session(reader, "default", session); });
      if (!view) give_up(view.error().message);
      if (++looks_ % 50 == 0) memory_kb_ = std::max(memory_kb_, anonymous_kb());
      if (view->progress.offset >= bytes) return;
    }
  }
  std::uint64_t memory_kb() const { return memory_kb_; }

 private:
  static std::uint64_t anonymous_kb() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
      if (std::uint64_t kilobytes = 0; word == "RssAnon:" && status >> kilobytes) return kilobytes;
    return 0;
  }

  std::string directory_;
  std::unique_ptr<Node> node_;
  std::uint64_t looks_ = 0, memory_kb_ = 0;
};

/// From the hook until all of it is stored, while other sessions go on; their latencies are what they wait for a line.
void bench_ingest(const Settings& settings, const Transcript& transcript) {
  const std::string name = "ingest";
  if (!settings.wants(name)) return;
  report(settings, name, [&] {
    Taking taking(settings);
    std::string line = transcript.path + ".line";
    Sample sample;
    auto start = Clock::now();
    taking.hook("large", transcript.path);
    std::jthread others([&](const std::stop_token& stop) {
      for (int i = 0; !stop.stop_requested(); ++i) {
        std::string path = line + std::to_string(i), text = R"({"type":"user","uuid":"u)" + std::to_string(i) +
                                                            R"(","message":{"role":"user","content":"hello"}})"
                                                            "\n";
        std::ofstream(path) << text;
        auto began = Clock::now();
        taking.hook("small" + std::to_string(i), path);
        taking.await("small" + std::to_string(i), text.size());
        sample.latencies.push_back(Clock::now() - began);
        std::filesystem::remove(path);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    });
    auto cpu = cpu_time();
    taking.await("large", transcript.bytes);
    sample.cpu = cpu_time() - cpu;
    sample.elapsed = Clock::now() - start;
    others.request_stop();
    others.join();
    sample.operations = transcript.bytes / 1'000'000;
    sample.extra = ",\"memory_kb\":" + std::to_string(taking.memory_kb());
    return sample;
  });
}

/// Fifty processes a second, each with one event; from the start of a process to its end.
void bench_hook(const Settings& settings) {
  const std::string name = "hook/50";
  if (!settings.wants(name)) return;
  report(settings, name, [&] {
    const std::string directory = std::filesystem::canonical(settings.directory).string() + "/hooks";
    std::filesystem::remove_all(directory);
    const std::string socket = directory + "/perdure.sock";
    e2e::Child daemon({PERDURE_BINARY, "serve", "--store", "lmdb:" + directory, "--listen", "127.0.0.1:0"});
    for (int looks = 0; !std::filesystem::exists(socket); ++looks) {
      if (looks == 1'000) give_up("the daemon does not listen");
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    Sample sample;
    auto start = Clock::now(), next = start;
    // Enough of them for the slowest in a hundred to mean something.
    while (sample.operations < 500 || sample.elapsed < settings.duration) {
      std::this_thread::sleep_until(next);
      next += std::chrono::milliseconds(20);
      auto began = Clock::now();
      e2e::Child hook({PERDURE_BINARY, "hook", "--url", "unix://" + socket});
      hook.say(R"({"session_id":"s","hook_event_name":"PostToolUse","cwd":"/src","tool_name":"Bash"})");
      hook.end_input();
      auto answer = hook.answer();
      if (hook.wait() != 0 || answer != R"({"continue":true})") give_up("a hook failed");
      sample.latencies.push_back(Clock::now() - began);
      ++sample.operations;
      sample.elapsed = Clock::now() - start;
    }
    if (std::filesystem::exists(directory + "/hooks.spool")) give_up("the daemon did not take all hooks");
    daemon.signal(SIGTERM);
    if (daemon.wait() != 0) give_up("the daemon did not stop");
    std::filesystem::remove_all(directory);
    return sample;
  });
}

}  // namespace
}  // namespace perdure::bench

int main(int argc, char** argv) {
  using namespace perdure::bench;
  Settings settings = parse_settings(argc, argv);
  bench_hook(settings);
  if (!settings.wants("parse/lines") && !settings.wants("iterate_many") && !settings.wants("ingest")) return 0;
  Transcript transcript = write_transcript(settings.directory);
  bench_lines(settings, transcript);
  bench_iterate_many(settings, transcript);
  bench_ingest(settings, transcript);
  std::filesystem::remove(transcript.path);
}
