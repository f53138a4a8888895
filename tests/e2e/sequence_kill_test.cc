// A process that appends and draws in both modes, killed again and again: no gap, no double, and only the tail is read.
#include <random>
#include <sstream>

#include "perdure/sequence.h"
#include "sequence_check.h"
#include "session_fixture.h"

namespace perdure::e2e {
namespace {

using namespace sim::sequencing;

const int kKills = by_engine(200, 8);

class SequenceKill : public SessionProcesses {
 protected:
  void SetUp() override {
    for (Known* known : {&behind_, &atomic_}) must(sequences_.set(known->partition, {.types = {{kType, kFloors}}}));
  }

  /// What the worker told before it died; its last line may be cut.
  void hear(Child& worker) {
    worker.gather(Milliseconds(0));
    for (const std::string& line : worker.take_events()) hear(line);
  }
  void hear(const std::string& line) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "told") told(words);
    if (name == "owned") owned(words);
    if (name == "recovered") recovered(words);
  }
  /// On a server the partition is free when the owner before was silent for its TTL; to be killed before that would
  /// show nothing.
  void wait_for_the_partition(Child& worker) {
    if (!on_test_server()) return;
    std::optional<std::string> line;
    do {
      line = worker.event();
      ASSERT_TRUE(line) << "it does not get the partition: " << worker.answer(Milliseconds(0)).value_or("");
      hear(*line);
    } while (!line->starts_with("recovered"));
  }
  void told(std::istringstream& words) {
    std::string partition, number;
    LogOffset offset = 0;
    Told event{};
    words >> partition >> offset >> event.workspace;
    while (words >> number) {
      auto equals = number.find('=');
      event.numbers.emplace_back(number.substr(0, equals), std::stoull(number.substr(equals + 1)));
    }
    Known& known = partition == behind_.partition ? behind_ : atomic_;
    EXPECT_TRUE(known.told.emplace(offset, std::move(event)).second) << "offset " << offset << " was told twice";
  }
  void owned(std::istringstream& words) {
    std::string token;
    words >> token;
    behind_.tokens.push_back(must(Token::parse(token)));
  }
  void recovered(std::istringstream& words) {
    std::uint64_t read = 0, behind = 0;
    words >> read >> behind;
    EXPECT_EQ(read, behind) << "only the tail after the stored offset is read";
    read_ += read;
    longest_ = std::max(longest_, behind);
  }
  void look(const Known& known) {
    std::vector<std::string> wrong;
    must(store_.read([&](Reader& reader) {
      wrong.clear();  // What was found in the past, before the server was asked, does not count.
      check(reader, known, [&](std::string what) { wrong.push_back(std::move(what)); });
    }));
    EXPECT_TRUE(wrong.empty()) << known.partition << ": " << wrong.size() << " wrong, the first: " << wrong.front();
  }

  Sequences sequences_ = must(Sequences::open(store_));
  Known behind_;
  Known atomic_{.partition = "atomic"};
  std::uint64_t read_ = 0;
  std::uint64_t longest_ = 0;
};

// N1 to N4; SEQ-B2, SEQ-B5, SEQ-B8, SEQ-B11.
TEST_F(SequenceKill, NothingInTheLogIsHandedOutAgain) {
  std::mt19937 chance(29);
  for (int life = 1; life <= kKills; ++life) {
    Child worker({PERDURE_E2E_SEQUENCE_WORKER, url_, std::to_string(life), by_engine("2000", "1000")});
    ASSERT_EQ(worker.answer(), "ok working");
    ASSERT_NO_FATAL_FAILURE(wait_for_the_partition(worker));
    worker.gather(Milliseconds(1 + chance() % 120));
    worker.kill();
    hear(worker);
    if (life % 20 == 0 || life == kKills) {
      look(behind_);
      look(atomic_);
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(behind_.told.size(), by_engine(1'000u, 10u));
  EXPECT_GT(atomic_.told.size(), 1'000u);
  EXPECT_GT(read_, 0u) << "none was killed with something to recover";
  std::printf(
      "%d kills: %zu events written behind by %zu owners, %zu atomic; %llu entries read in recovery, %llu at most\n",
      kKills, behind_.told.size(), behind_.tokens.size(), atomic_.told.size(), static_cast<unsigned long long>(read_),
      static_cast<unsigned long long>(longest_));
  expect_sound(store_);
}

}  // namespace
}  // namespace perdure::e2e
