// Which spaces a node serves, and how it sets their windows.
#include "debounce/rows.h"
#include "node/transcript_test_util.h"

namespace perdure::transcript {
namespace {

constexpr SettingsTable kSpaces("transcript-space");

class TranscriptServe : public TranscriptNode {
 protected:
  void SetUp() override {
    NodeOptions options{.store = fresh_store_url()};
    options.store_options.log = [this](const LogRecord& record) {
      if (record.component == "transcript") log.note(std::string(record.message));
    };
    options.transcripts.marker = *marker_preset(5s);
    options.transcripts.set_marker = true;
    node = open(std::move(options));
    ASSERT_TRUE(node);
  }
  /// As the first hook of a space does.
  void begin_space(const std::string& space, std::optional<Bytes> debouncer = {}) {
    change([&](Transaction& txn) -> Result<void> {
      if (debouncer) txn.set(debounce::debouncer_key(space, kDebouncer), *debouncer);
      kSpaces.write(txn, space, kDebouncer, Bytes());
      return {};
    });
  }
  std::size_t times_logged(const std::string& text) {
    auto all = log.entries();
    return static_cast<std::size_t>(
        std::ranges::count_if(all, [&](const std::string& each) { return each.find(text) != each.npos; }));
  }
  std::optional<Duration> window(const std::string& space) {
    auto found = node->debouncers().in(space).get(kDebouncer);
    return found ? found->settings.window : std::nullopt;
  }
};

TEST_F(TranscriptServe, AWindowThatCannotBeSetIsSaidAndSetLater) {  // WORK-5
  begin_space("shop", "damaged");
  EXPECT_TRUE(eventually([&] { return times_logged("how long hooks are gathered could not be set") > 0; }));
  change([&](Transaction& txn) -> Result<void> {
    txn.clear(debounce::debouncer_key("shop", kDebouncer));
    return {};
  });
  EXPECT_TRUE(eventually([&] { return window("shop") == 5s; }));
}

TEST_F(TranscriptServe, ASpaceThatCannotBeServedIsTriedAgainWithTheNext) {  // WORK-B5
  // No hook can bring about such a name.
  const std::string bad = "not a name";
  begin_space(bad);
  EXPECT_TRUE(eventually([&] { return times_logged("transcripts of this space are not read") == 1; }));
  begin_space("shop");
  EXPECT_TRUE(eventually([&] { return times_logged("transcripts of this space are not read") == 2; }));
}

}  // namespace
}  // namespace perdure::transcript
