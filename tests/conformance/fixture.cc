#include <unistd.h>

#include <latch>

#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

std::filesystem::path new_directory() {
  auto pattern = (std::filesystem::temp_directory_path() / "perdure-conformance-XXXXXX").string();
  EXPECT_NE(mkdtemp(pattern.data()), nullptr) << pattern;
  return pattern;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Engines, Conformance, testing::ValuesIn(kEngines),
                         [](const auto& test) { return test.param.name; });

void PrintTo(const EngineUnderTest& engine, std::ostream* out) {
  *out << engine.name;
}

Bytes numbered(const std::string& prefix, int number) {
  std::string digits = std::to_string(number);
  return prefix + std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0') + digits;
}

std::vector<Bytes> keys_of(const std::vector<Row>& rows) {
  std::vector<Bytes> keys;
  for (const Row& row : rows) keys.push_back(row.key);
  return keys;
}

std::string show(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) text += (text.empty() ? "" : " ") + printable(row.key) + "=" + printable(row.value);
  return text;
}

Conformance::Conformance() : directory_(new_directory()), pool_("test", kPoolThreads) {
  reopen();
}

Conformance::~Conformance() {
  close();
  std::filesystem::remove_all(directory_);
}

void Conformance::close() {
  if (store_) store_->close();
  store_.reset();
}

void Conformance::reopen(StoreOptions options) {
  close();
  open_on(make_engine(options), options);
}

std::unique_ptr<Engine> Conformance::make_engine(const StoreOptions& wanted) {
  StoreOptions options = wanted;
  options.map_bytes = std::size_t{1} << 30;  // Sanitizers cannot reserve a tebibyte.
  auto engine = GetParam().make(directory_, pool_, options);
  if (!engine) throw std::runtime_error(to_string(engine.error()));
  return std::move(*engine);
}

void Conformance::open_on(std::unique_ptr<Engine> engine, StoreOptions options) {
  close();
  capabilities_ = engine->capabilities();
  auto opened = Store::on_engine(std::move(engine), pool_, std::move(options));
  if (!opened) throw std::runtime_error(to_string(opened.error()));
  store_ = std::move(*opened);
}

void Conformance::set(BytesView key, BytesView value) {
  must(store().transact([&](Transaction& txn) { txn.set(key, value); }));
}

void Conformance::clear(BytesView key) {
  must(store().transact([&](Transaction& txn) { txn.clear(key); }));
}

std::optional<Bytes> Conformance::get(BytesView key) {
  return must(store().read([&](Reader& reader) { return reader.get(key); }));
}

std::vector<Row> Conformance::range(const KeyRange& range, const RangeOptions& options) {
  return must(store().read([&](Reader& reader) { return reader.get_range(range, options); }));
}

Watch Conformance::watch(BytesView key) {
  return must(store().transact([&](Transaction& txn) { return txn.watch(key); }));
}

int Conformance::runs_against(const BodyFn& body, const BodyFn& other) {
  int runs = 0;
  must(store().transact([&](Transaction& txn) {
    body(txn);
    txn.set("mine", "written");
    if (++runs == 1) meanwhile([&] { must(store().transact([&](Transaction& theirs) { other(theirs); })); });
  }));
  return runs;
}

void Conformance::settle() {
  // Tasks are taken in order: once each thread is in one of these, all earlier ones are over.
  auto all_threads = std::make_shared<std::latch>(kPoolThreads + 1);
  for (unsigned i = 0; i < kPoolThreads; ++i) pool_.post([all_threads] { all_threads->arrive_and_wait(); });
  all_threads->arrive_and_wait();
}

void Conformance::in_one_batch(const std::function<void()>& start) {
  Latch inside, go_on;
  std::thread holder([&] {
    must(store().transact(
        [&](Transaction&) {
          inside.set();
          go_on.wait();
        },
        {.timeout = kSoon, .body = Body::kShort}));
  });
  inside.wait();
  start();
  go_on.set();
  holder.join();
}

}  // namespace perdure::conformance
