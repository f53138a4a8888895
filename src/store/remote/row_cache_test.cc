#include "store/remote/row_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "store/remote/memory_server.h"
#include "store/remote/replica.h"

namespace perdure::remote {
namespace {

constexpr std::size_t kAll = SIZE_MAX;

Versioned row(std::string value, std::uint64_t version) {
  return {std::move(value), Version{version}};
}

std::string shown(RowCache& cache, KeyRange range, Direction direction = Direction::kForward) {
  std::string text;
  auto known = cache.walk(cache.version(), range, direction, [&](BytesView key, const Versioned& found) {
    text += Bytes(key) + "=" + found.value + " ";
    return true;
  });
  return text + (known == RowCache::Known::kYes ? "." : "?");
}

bool knows(RowCache& cache, BytesView key) {
  return cache.find(cache.version(), key).known == RowCache::Known::kYes;
}

std::string value_at(RowCache& cache, BytesView key) {
  auto found = cache.find(cache.version(), key);
  return found.row ? found.row->value : "nothing";
}

Moment moment_at(std::uint64_t version, std::uint64_t folded = 0) {
  return {.end = {Version{version}}, .folded = Version{folded}, .trimmed = {}, .log = {}, .values = {}, .ranges = {}};
}

TEST(RemoteBatch, ComesBackAsItWas) {
  Writes writes{{Bytes(), row("at the empty key", 7)},
                {Bytes("a\0b", 3), row("", 5)},
                {"a", std::nullopt},
                {"abc", row(std::string(300, 'x'), 9)},
                {"abd", row("y", 1)}};
  auto back = decode_batch(encode_batch(writes, Version{9}), Version{9});
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), writes.size());
  for (auto mine = writes.begin(), theirs = back->begin(); mine != writes.end(); ++mine, ++theirs) {
    EXPECT_EQ(mine->first, theirs->first);
    ASSERT_EQ(mine->second.has_value(), theirs->second.has_value());
    if (!mine->second) continue;
    EXPECT_EQ(mine->second->value, theirs->second->value);
    EXPECT_EQ(mine->second->version, theirs->second->version);
  }
}

TEST(RemoteBatch, DamageIsNoticedWhereverItIs) {
  Bytes whole = encode_batch({{"key", row("value", 3)}, {"kez", std::nullopt}}, Version{4});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    Bytes damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_FALSE(decode_batch(damaged, Version{4})) << i;
    EXPECT_FALSE(decode_batch(BytesView(whole).substr(0, i), Version{4})) << i;
  }
  EXPECT_FALSE(decode_batch(whole, Version{5})) << "an entry under another number";
}

TEST(RemoteBatch, ASealedValueKnowsItsKeyAndVersion) {
  Bytes sealed = seal_value("key", row("value", 3));
  EXPECT_EQ(open_value("key", {sealed, Version{3}})->value, "value");
  EXPECT_EQ(open_value("kez", {sealed, Version{3}}).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(open_value("key", {sealed, Version{4}}).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(open_value("key", {"abc", Version{3}}).error().code, ErrorCode::kCorrupt);
}

TEST(RowCache, KnowsNothingAtFirst) {
  RowCache cache(kAll);
  EXPECT_FALSE(knows(cache, "a"));
  EXPECT_EQ(shown(cache, {}), "?");
  EXPECT_EQ(shown(cache, {}, Direction::kReverse), "?");
}

TEST(RowCache, WhatARangeHasIsKnownWithItsEmptyStretches) {
  RowCache cache(kAll);
  cache.add(moment_at(0), KeyRange{"b", "f"}, {{"c", "1", Version{1}}, {"e", "2", Version{1}}});
  EXPECT_EQ(shown(cache, {"b", "f"}), "c=1 e=2 .");
  EXPECT_EQ(shown(cache, {"b", "f"}, Direction::kReverse), "e=2 c=1 .");
  EXPECT_EQ(shown(cache, {"d", "e"}), ".");
  EXPECT_TRUE(knows(cache, "d"));
  EXPECT_EQ(value_at(cache, "d"), "nothing");
  EXPECT_FALSE(knows(cache, "f")) << "the end of the range does not belong to it";
  EXPECT_FALSE(knows(cache, "a"));
  EXPECT_EQ(shown(cache, {"b", "g"}), "c=1 e=2 ?");
  EXPECT_EQ(shown(cache, {"a", "f"}, Direction::kReverse), "e=2 c=1 ?");
}

TEST(RowCache, NeighbouringRangesBecomeOne) {
  RowCache cache(kAll);
  cache.add(moment_at(0), KeyRange{"b", "d"}, {{"c", "1", Version{1}}});
  cache.add(moment_at(0), KeyRange{"d", "f"}, {{"d", "2", Version{1}}});
  EXPECT_EQ(shown(cache, {"b", "f"}), "c=1 d=2 .");
  cache.add(moment_at(0), KeyRange{"f", ""}, {});
  cache.add(moment_at(0), KeyRange{"", "b"}, {});
  EXPECT_EQ(shown(cache, {}), "c=1 d=2 .");
  EXPECT_EQ(shown(cache, {}, Direction::kReverse), "d=2 c=1 .");
}

TEST(RowCache, WhatTheLogSaidGoesBeforeTheRowsOfTheServer) {
  RowCache cache(kAll);
  cache.apply({{"a", row("new", 1)}, {"b", std::nullopt}}, Version{1});
  cache.add(moment_at(1), KeyRange{"", ""},
            {{"a", "old", Version{1}}, {"b", "old", Version{1}}, {"c", "3", Version{1}}});
  EXPECT_EQ(shown(cache, {}), "a=new c=3 .");
}

TEST(RowCache, RowsOfBeforeAFoldAreNotTaken) {
  RowCache cache(1);
  cache.apply({{"a", row("new", 5)}}, Version{5});
  cache.note_folded(Version{5});
  cache.trim();
  ASSERT_FALSE(knows(cache, "a")) << "folded and forgotten";
  EXPECT_FALSE(cache.add(moment_at(4), "a", row("old", 1))) << "nothing here would know that it is old";
  EXPECT_FALSE(cache.add(moment_at(5, 4), "a", row("old", 1))) << "the log was read to its end, its rows were not";
  EXPECT_TRUE(cache.add(moment_at(5, 5), "a", row("new", 5)));
}

TEST(RowCache, WhatOnlyTheLogHasIsNotForgotten) {
  RowCache cache(1);
  cache.apply({{"a", row("1", 1)}, {"b", std::nullopt}}, Version{1});
  cache.apply({{"a", row("2", 2)}}, Version{2});
  cache.trim();
  EXPECT_EQ(value_at(cache, "a"), "2");
  auto folded = cache.unfolded();
  ASSERT_EQ(folded.size(), 2u);
  EXPECT_EQ(folded[0].row->version, Version{2});
  EXPECT_FALSE(folded[1].row);
  cache.note_folded(Version{1});
  cache.trim();
  EXPECT_EQ(value_at(cache, "a"), "2") << "its newest write is not folded";
  EXPECT_FALSE(knows(cache, "b"));
  cache.note_folded(Version{2});
  cache.trim();
  EXPECT_FALSE(knows(cache, "a"));
  EXPECT_EQ(cache.unfolded_bytes(), 0u);
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(RowCache, AGapInTheLogForgetsEverything) {
  RowCache cache(kAll);
  cache.apply({{"a", row("1", 1)}}, Version{1});
  Moment moment = moment_at(9, 7);
  moment.trimmed = Version{5};
  moment.log = {{Version{9}, encode_batch({{"b", row("2", 9)}}, Version{9})}};
  moment.end.link = link_of(moment.log[0].batch);
  auto followed = cache.advance({Version{1}}, moment, {});
  ASSERT_TRUE(followed);
  EXPECT_FALSE(*followed);
  EXPECT_FALSE(knows(cache, "a"));
  EXPECT_EQ(value_at(cache, "b"), "2");
  EXPECT_EQ(cache.version(), Version{9});
}

TEST(RowCache, AGapIsNoticedThoughOthersHaveBroughtTheCacheBeyondWhatWasTrimmed) {
  RowCache cache(kAll);
  cache.apply({{"a", row("1", 6)}}, Version{6});
  // Asked for when the cache was at 1, and answered from 7 on: what 7 has written is in the rows, and unknown here.
  Moment moment = moment_at(9, 7);
  moment.trimmed = Version{5};
  moment.log = {{Version{9}, encode_batch({{"b", row("2", 9)}}, Version{9})}};
  moment.end.link = link_of(moment.log[0].batch);
  auto followed = cache.advance({Version{1}}, moment, {});
  ASSERT_TRUE(followed);
  EXPECT_FALSE(*followed);
  EXPECT_FALSE(knows(cache, "a"));
}

TEST(RowCache, ALogThatEndsTooEarlyIsRefusedWithoutEffect) {
  RowCache cache(kAll);
  Moment moment = moment_at(9);
  moment.log = {{Version{8}, encode_batch({{"b", row("2", 8)}}, Version{8})}};
  EXPECT_EQ(cache.advance({}, moment, {}).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(cache.version(), Version{});
}

/// An entry that writes nothing, on top of another.
LogEntry entry_on(const LogEnd& end, std::uint64_t version) {
  return {{version}, encode_batch({}, {version}, end.link)};
}

LogEnd end_with(const LogEntry& entry) {
  return {entry.version, link_of(entry.batch)};
}

TEST(RowCache, AnEntryThatIsMissingFromAnAnswerIsDamageAndNoLossOfCommits) {
  LogEntry first = entry_on({}, 1), second = entry_on(end_with(first), 2), third = entry_on(end_with(second), 3);
  for (const auto& log : {std::vector{second, third}, std::vector{first, third}, std::vector{first, second}}) {
    RowCache cache(kAll);
    Moment moment{.end = end_with(third), .folded = {}, .trimmed = {}, .log = log, .values = {}, .ranges = {}};
    EXPECT_EQ(cache.advance({}, moment, {}).error().code, ErrorCode::kCorrupt);
    EXPECT_EQ(cache.version(), Version{});
  }
}

TEST(RowCache, ALateAnswerOfAnotherPastIsNoticedWhereverItEnds) {
  LogEntry first = entry_on({}, 1), second = entry_on(end_with(first), 2), third = entry_on(end_with(second), 3);
  // Another past branches off behind the first entry, or before it.
  LogEntry other_first{{1}, encode_batch({{"a", row("1", 1)}}, {1})};
  LogEntry other_second{{2}, encode_batch({{"a", row("2", 2)}}, {2}, end_with(first).link)};
  LogEntry other_third{{3}, encode_batch({{"a", row("3", 3)}}, {3}, end_with(second).link)};
  struct Case {
    const char* what;
    std::vector<LogEntry> log;
    LogEnd end;
    bool sound;
  };
  for (const Case& late : std::vector<Case>{
           {"it ends where it was asked", {}, end_with(first), true},
           {"it ends before what is known", {second}, end_with(second), true},
           {"it is what is known", {second, third}, end_with(third), true},
           {"it goes on", {second, third, entry_on(end_with(third), 4)}, end_with(entry_on(end_with(third), 4)), true},
           {"another entry where it was asked", {}, end_with(other_first), false},
           {"on top of another entry", {entry_on(end_with(other_first), 2)}, {{2}, 1}, false},
           {"another entry where we are", {second, other_third}, end_with(other_third), false},
           {"another entry before us, and beyond",
            {other_second, entry_on(end_with(other_second), 4)},
            end_with(entry_on(end_with(other_second), 4)),
            false}}) {
    RowCache cache(kAll);
    cache.apply({}, {1}, end_with(first).link);
    const LogEnd asked = cache.end();
    cache.apply({}, {2}, end_with(second).link);
    cache.apply({}, {3}, end_with(third).link);
    Moment moment{.end = late.end, .folded = {}, .trimmed = {}, .log = late.log, .values = {}, .ranges = {}};
    auto taken = cache.advance(asked, moment, {});
    EXPECT_EQ(taken.has_value(), late.sound) << late.what;
    if (taken) continue;
    EXPECT_EQ(taken.error().code, ErrorCode::kStoreFailed) << late.what;
  }
}

TEST(RowCache, AViewShowsWhatItShowedWhenItWasOpened) {
  RowCache cache(kAll);
  cache.add(moment_at(0), KeyRange{}, {{"a", "1", Version{}}, {"c", "1", Version{}}});
  Version before = cache.open_view();
  cache.apply({{"a", row("2", 1)}, {"b", row("2", 1)}, {"c", std::nullopt}}, Version{1});
  Version between = cache.open_view();
  cache.apply({{"a", std::nullopt}, {"b", row("3", 2)}, {"d", row("3", 2)}}, Version{2});
  auto show = [&](Version at, Direction direction = Direction::kForward) {
    std::string text;
    KeyRange all;
    EXPECT_EQ(cache.walk(at, all, direction,
                         [&](BytesView key, const Versioned& found) {
                           text += Bytes(key) + "=" + found.value + " ";
                           return true;
                         }),
              RowCache::Known::kYes);
    return text;
  };
  EXPECT_EQ(show(before), "a=1 c=1 ");
  EXPECT_EQ(show(before, Direction::kReverse), "c=1 a=1 ");
  EXPECT_EQ(show(between), "a=2 b=2 ");
  EXPECT_EQ(show(cache.version()), "b=3 d=3 ");
  EXPECT_EQ(cache.find(before, "c").row->value, "1");
  EXPECT_EQ(cache.find(before, "d").row, nullptr);
  cache.close_view(before);
  EXPECT_EQ(show(between, Direction::kReverse), "b=2 a=2 ");
  cache.close_view(between);
}

TEST(RowCache, AViewOfWhatWasNeverKnownIsLost) {
  RowCache cache(kAll);
  Version before = cache.open_view();
  cache.apply({{"a", row("1", 1)}}, Version{1});
  EXPECT_EQ(cache.find(before, "a").known, RowCache::Known::kLost);
  EXPECT_EQ(cache.find(before, "b").known, RowCache::Known::kNo)
      << "nobody has written it since, so it can be asked for";
  cache.close_view(before);
}

/// Two replicas of one log, small caches, folds at any time: each read is compared with a map.
class ReplicaModel {
 public:
  explicit ReplicaModel(unsigned seed) : random_(seed) {
    for (int i = 0; i < 2; ++i)
      replicas_.push_back(
          std::make_unique<Replica>(std::make_unique<DirectLink>(std::make_unique<MemoryServer>(store_)), 3000));
  }

  void step() {
    Replica& replica = *replicas_[draw(2)];
    switch (draw(6)) {
      case 0:
      case 1:
        return write(replica);
      case 2:
        return fold(replica);
      case 3:
        return get(replica);
      default:
        return scan(replica);
    }
  }

 private:
  /// Left open now and then, for a while.
  Version fresh_view(Replica& replica) {
    EXPECT_TRUE(replica.follow());
    Version at = replica.open_view();
    if (draw(2) == 0)
      old_views_.push_back({&replica, at, model_});
    else
      replica.close_view(at);
    if (old_views_.size() > 5) {
      check_old(old_views_.front());
      old_views_.pop_front();
    }
    return at;
  }
  struct OldView {
    Replica* replica;
    Version at;
    std::map<Bytes, Versioned> model;
  };
  static void check_old(OldView& view) {
    std::string want, got;
    for (auto& [k, v] : view.model) want += k + "=" + v.value + " ";
    auto scanned = view.replica->scan(view.at, {}, {}, [&](BytesView k, const Versioned& v) {
      got += Bytes(k) + "=" + v.value + " ";
      return true;
    });
    if (scanned) {
      EXPECT_EQ(got, want);
    } else {
      EXPECT_EQ(scanned.error().code, ErrorCode::kConflict);
    }
    view.replica->close_view(view.at);
  }
  std::size_t draw(std::size_t n) { return random_() % n; }
  Bytes key() { return Bytes(1, static_cast<char>('a' + draw(20))) + (draw(3) == 0 ? "x" : ""); }

  void write(Replica& replica) {
    Version base = *replica.follow();
    Version version{base.number + 1 + draw(3)};
    Writes writes;
    for (std::size_t n = 1 + draw(4); n > 0; --n)
      writes[key()] = draw(3) == 0
                          ? std::nullopt
                          : std::optional(row(std::to_string(random_()) + std::string(draw(200), 'v'), version.number));
    const LogEnd end = replica.about_to_ask()->since;
    LogEntry entry{version, encode_batch(writes, version, end.link)};
    ASSERT_TRUE(store_->log.append(end, entry));
    replica.appended(writes, entry);
    for (auto& [at, written] : writes) {
      if (written)
        model_[at] = *written;
      else
        model_.erase(at);
    }
  }
  void fold(Replica& replica) {
    Fold next = replica.next_fold();
    if (store_->log.fold(next)) replica.folded(next.to.version);
  }
  void get(Replica& replica) {
    Version at = fresh_view(replica);
    Bytes wanted = key();
    auto got = replica.get(at, wanted);
    ASSERT_TRUE(got) << to_string(got.error());
    auto want = model_.find(wanted);
    ASSERT_EQ(got->has_value(), want != model_.end()) << wanted;
    if (*got) {
      ASSERT_EQ((*got)->value, want->second.value);
    }
  }
  void scan(Replica& replica) {
    Version at = fresh_view(replica);
    KeyRange range{draw(4) == 0 ? Bytes() : key(), draw(4) == 0 ? Bytes() : key()};
    RangeOptions options{.limit = draw(2) == 0 ? SIZE_MAX : draw(5),
                         .direction = draw(2) == 0 ? Direction::kForward : Direction::kReverse};
    std::string want, got;
    std::vector<std::string> rows;
    for (auto& [k, v] : model_)
      if (range.contains(k)) rows.push_back(k + "=" + v.value + " ");
    if (options.direction == Direction::kReverse) std::ranges::reverse(rows);
    for (std::size_t i = 0; i < rows.size() && i < options.limit; ++i) want += rows[i];
    auto scanned = replica.scan(at, range, options, [&](BytesView k, const Versioned& v) {
      got += Bytes(k) + "=" + v.value + " ";
      return true;
    });
    ASSERT_TRUE(scanned);
    ASSERT_EQ(got, want);
  }

  std::mt19937 random_;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::map<Bytes, Versioned> model_;
  std::deque<OldView> old_views_;
};

TEST(Replica, ShowsWhatAMapWouldShow) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    ReplicaModel model(seed);
    for (int i = 0; i < 400 && !testing::Test::HasFatalFailure(); ++i) model.step();
    if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace perdure::remote
