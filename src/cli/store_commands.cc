// What works on a store itself, beside the daemons that have it open or without any.
#include <cstdlib>
#include <filesystem>

#include "cli/commands.h"
#include "perdure/store.h"

namespace perdure::cli {
namespace {

Flag store_flag() {
  return {"store", "URL", "The store, as serve has it; lmdb:./perdure-data unless told", "PERDURE_STORE"};
}

// Opening makes a store that is not there, which nobody who wants a copy of one means.
OrFailure<Store> open_existing(const Arguments& arguments) {
  std::string url = arguments.maybe("store").value_or("lmdb:./perdure-data");
  if (url == "memory:") return usage("a store in memory is gone with its daemon; name another, as in --store lmdb:DIR");
  bool is_here = url.starts_with("lmdb:");
  std::string directory = is_here ? url.substr(5) : "";
  if (std::error_code error; is_here && !std::filesystem::exists(directory + "/data.mdb", error))
    return give_up(kExitNotFound, "there is no store in " + directory, "say where it is: --store lmdb:DIR");
  // gRPC, which an engine may use, writes lines of its own to standard error, unless told otherwise.
  ::setenv("GRPC_VERBOSITY", "NONE", 0);
  auto store = Store::open(url);
  if (!store) return std::unexpected(failure_of(store.error()));
  return std::move(*store);
}

OrFailure<void> back_up(Context& context, const Arguments& arguments) {
  auto store = open_existing(arguments);
  if (!store) return std::unexpected(std::move(store.error()));
  if (auto done = store->backup(arguments.one("FILE")); !done) return std::unexpected(failure_of(done.error()));
  context.say("wrote " + arguments.one("FILE"));
  return {};
}

OrFailure<void> verify(Context& context, const Arguments& arguments) {
  auto store = open_existing(arguments);
  if (!store) return std::unexpected(std::move(store.error()));
  World& world = context.world();
  auto report = store->verify([&](double share) {
    if (world.err_is_terminal) world.err << "\r" << static_cast<int>(share * 100) << "%" << std::flush;
  });
  if (world.err_is_terminal) world.err << "\r\x1b[K" << std::flush;
  if (!report) return std::unexpected(failure_of(report.error()));
  Value::Map shown = {{"rows", report->rows}, {"bytes", report->bytes}, {"problem_count", report->problem_count}};
  if (!report->ok()) shown["problems"] = Value::List(report->problems.begin(), report->problems.end());
  context.print_object(shown);
  if (report->ok()) return {};
  return give_up(kExitError, "the store is damaged", "stop what uses it, and restore it from a backup");
}

}  // namespace

std::vector<Command> store_commands() {
  return {
      {"backup",
       kSystem,
       "Write a consistent copy of a store, while daemons go on working",
       {{"FILE", "A file that is not there yet"}},
       {store_flag()},
       back_up},
      {"verify", kSystem, "Check everything that is stored", {}, {store_flag()}, verify},
  };
}

}  // namespace perdure::cli
