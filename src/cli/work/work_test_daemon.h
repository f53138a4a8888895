// A daemon with one worker's queue, for tests of `perdure work`, and the running of the binary itself.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cli/cli_test_world.h"

namespace perdure::cli {

/// Gives out events, and records what was said of them: `complete e1 {"result":7}`.
class WorkTestDaemon {
 public:
  void add(const std::string& id, const std::string& value = "null") {
    std::lock_guard lock(mutex_);
    waiting_.push_back(R"({"id":")" + id + R"(","token":"t-)" + id + R"(","attempt":2,"traceparent":"00-ab","value":)" +
                       value + "}");
    changed_.notify_all();
  }
  /// Every settlement of this event is refused as stale.
  void make_stale(const std::string& id) {
    std::lock_guard lock(mutex_);
    stale_.insert(id);
  }
  /// Waits for the settlement with this number, from 0, and answers it.
  std::string settled(std::size_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return settled_.size() > number; });
    return settled_[number];
  }
  std::vector<std::string> all_settled() {
    std::lock_guard lock(mutex_);
    return settled_;
  }
  HttpTestServer::Handler handler() {
    return [this](const Request& request, Wire&) { return answer(request); };
  }

 private:
  std::optional<Response> answer(const Request& request) {
    Value body = *Value::from_json(request.body);
    if (request.target == "/v1/default/workers/mail/settle") return settle(body);
    if (request.target != "/v1/default/workers/mail/claim") return Response{404, {}, problem(404, "not_found", "?")};
    std::unique_lock lock(mutex_);
    // Shorter than what the worker asks for, so that the server can be stopped.
    changed_.wait_for(lock, std::chrono::milliseconds(50), [&] { return !waiting_.empty(); });
    std::string items;
    for (std::int64_t i = 0; i < *body.find("max")->as_integer() && !waiting_.empty(); ++i) {
      items += (items.empty() ? "" : ",") + waiting_.front();
      waiting_.pop_front();
    }
    return Response{200, {}, R"({"items":[)" + items + "]}"};
  }

  Response settle(const Value& body) {
    std::lock_guard lock(mutex_);
    Value::Map answer;
    for (std::string kind : {"complete", "fail", "extend", "release"}) {
      const Value* list = body.find(kind);
      if (list == nullptr) continue;
      Value::List outcomes;
      for (Value item : *list->as_list()) {
        std::string id = *item.find("id")->as_text();
        EXPECT_EQ(*item.find("token")->as_text(), "t-" + id);
        item.as_map()->erase("id");
        item.as_map()->erase("token");
        settled_.push_back(kind + " " + id + " " + item.to_json());
        Value stale = Value::Map{{"error", Value::Map{{"code", "stale_token"}, {"message", "the claim is lost"}}}};
        outcomes.push_back(stale_.contains(id) ? stale : Value(Value::Map{}));
      }
      answer[kind] = std::move(outcomes);
    }
    changed_.notify_all();
    return {200, {}, Value(std::move(answer)).to_json()};
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;
  std::set<std::string> stale_;
  std::vector<std::string> settled_;
};

/// `perdure work mail ... -- sh -c SCRIPT` as a process of its own. Killed with it, if it still runs.
class WorkProcess {
 public:
  WorkProcess(const std::string& url, std::vector<std::string> flags, const std::string& script, std::string err_path)
      : err_path_(std::move(err_path)) {
    std::vector<std::string> args = {PERDURE_BINARY, "work", "mail", "--url", url};
    args.insert(args.end(), flags.begin(), flags.end());
    for (std::string arg : {"--", "sh", "-c", script.c_str()}) args.push_back(arg);
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGPIPE, SIG_DFL);
    ::dup2(::open("/dev/null", O_RDWR), STDOUT_FILENO);
    ::dup2(::open(err_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~WorkProcess() {
    if (pid_ <= 0) return;
    signal(SIGKILL);
    wait();
  }
  void signal(int number) { ::kill(pid_, number); }
  /// Its exit code, or minus the signal that ended it.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  int stop() {
    signal(SIGTERM);
    return wait();
  }
  std::string err() const {
    std::ifstream file(err_path_);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

 private:
  std::string err_path_;
  pid_t pid_ = -1;
};

}  // namespace perdure::cli
