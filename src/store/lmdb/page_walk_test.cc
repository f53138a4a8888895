#include "store/lmdb/page_walk.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>

#include "store/lmdb/lmdb_test_file.h"

namespace perdure::lmdb {
namespace {

TEST(PageWalk, EmptyStoreIsClean) {
  LmdbTestFile file;
  auto report = file.walk_sealed();
  EXPECT_TRUE(report.sound());
  EXPECT_EQ(report.rows, 0u);
  EXPECT_EQ(report.lost_pages, 0u);
}

TEST(PageWalk, AllRowsAreVisitedInOrderWithTheirValues) {
  LmdbTestFile file;
  std::map<Bytes, Bytes> model;
  for (int i = 0; i < 5000; ++i) {
    Bytes key = row_key(static_cast<std::uint64_t>(i * 7919 % 5000)) + Bytes(static_cast<std::size_t>(i % 400), 'k');
    model[key] = sealed_value(key, i % 100 == 0 ? 20'000 : static_cast<std::size_t>(8 + i % 300));
  }
  model["empty"] = "";
  file.commit([&](auto& batch) {
    for (auto& [key, value] : model) batch.put(key, value);
  });
  auto next = model.begin();
  file.with_snapshot([&](const Meta& meta) {
    auto report = walk(file.fd(), file.path(), meta, [&](BytesView key, BytesView value) {
                    EXPECT_EQ(key, next->first);
                    EXPECT_TRUE(value == next->second) << key;
                    ++next;
                    return std::optional<std::string>();
                  }).value();
    EXPECT_TRUE(report.sound());
    EXPECT_EQ(report.rows, model.size());
    EXPECT_GT(meta.main_db.depth, 2);
  });
  EXPECT_TRUE(next == model.end());
}

// Puts, overwrites and deletes of all sizes, in transactions large and small, reopened at times: the walk must never
// call what LMDB makes damaged, and every page must be accounted for.
TEST(PageWalk, WhateverLmdbWritesIsClean) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    std::mt19937_64 random(seed);
    LmdbTestFile file;
    std::map<Bytes, bool> model;
    for (int round = 0; round < 60; ++round) {
      bool shrinking = round % 20 >= 14;
      file.commit([&](auto& batch) {
        for (auto left = random() % (round % 5 == 0 ? 1500 : 60); left > 0; --left) {
          Bytes key = row_key(random() % 3000) + Bytes(random() % 20 == 0 ? random() % 490 : 0, 'x');
          if (random() % 4 < (shrinking ? 3 : 1) && !model.empty()) {
            auto victim = model.lower_bound(key);
            if (victim == model.end()) victim = model.begin();
            batch.erase(victim->first);
            model.erase(victim);
          } else {
            batch.put_sealed(key, 8 + (random() % 30 == 0 ? random() % 60'000 : random() % 300));
            model[key] = true;
          }
        }
      });
      if (round % 10 == 9) {
        file.close();
        file.open();
      }
      auto report = file.walk_sealed();
      ASSERT_TRUE(report.sound()) << "seed " << seed << " round " << round << ": " << report.damage[0];
      ASSERT_EQ(report.rows, model.size());
      ASSERT_EQ(report.lost_pages, 0u);
      ASSERT_TRUE(check_file_size(file.fd(), file.path()));
    }
  }
}

TEST(PageWalk, EmptiedStoreIsClean) {
  LmdbTestFile file;
  file.commit([](auto& batch) {
    for (int i = 0; i < 20'000; ++i) batch.put_sealed(row_key(i), 100);
    for (int i = 0; i < 100; ++i) batch.put_sealed("big" + std::to_string(i), 30'000);
  });
  file.commit([](auto& batch) {
    for (int i = 0; i < 20'000; ++i) batch.erase(row_key(i));
    for (int i = 0; i < 100; ++i) batch.erase("big" + std::to_string(i));
  });
  auto report = file.walk_sealed();
  EXPECT_TRUE(report.sound()) << report.damage[0];
  EXPECT_EQ(report.rows, 0u);
  EXPECT_EQ(report.tree_pages, 0u);
  EXPECT_GT(report.freelist_pages, 1u);
  EXPECT_GT(report.free_pages, 1000u);
}

TEST(PageWalk, CompactCopyIsClean) {
  LmdbTestFile file;
  file.commit([](auto& batch) {
    for (int i = 0; i < 3000; ++i) batch.put_sealed(row_key(i), 100);
    batch.put_sealed("big", 50'000);
  });
  file.commit([](auto& batch) {
    for (int i = 0; i < 3000; i += 2) batch.erase(row_key(i));
  });
  std::string copy = file.directory() + "/copy.mdb";
  int fd = ::open(copy.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  LmdbTestFile::expect(mdb_env_copyfd2(file.env(), fd, MDB_CP_COMPACT));
  auto report = walk(fd, copy, read_meta(fd, copy, 1).value(), check_sealed).value();
  EXPECT_TRUE(report.sound()) << report.damage[0];
  EXPECT_EQ(report.rows, 1501u);
  ::close(fd);
}

TEST(PageWalk, ProgressRisesToTheTotal) {
  LmdbTestFile file;
  file.commit([](auto& batch) {
    for (int i = 0; i < 30'000; ++i) batch.put_sealed(row_key(i), 200);
  });
  std::uint64_t last = 0, total = 0;
  int calls = 0;
  file.walk_sealed({.progress = [&](std::uint64_t done, std::uint64_t of) {
    EXPECT_GE(done, last);
    last = done;
    total = of;
    ++calls;
  }});
  EXPECT_EQ(last, total);
  EXPECT_GT(calls, 3);
}

TEST(PageWalk, CommitsDuringTheWalkDoNotDisturbIt) {
  LmdbTestFile file;
  file.commit([](auto& batch) {
    for (int i = 0; i < 3000; ++i) batch.put_sealed(row_key(i), 200);
  });
  int visited = 0;
  auto visit = [&](BytesView key, BytesView value) {
    if (++visited % 100 == 0)
      file.commit([&](auto& batch) {
        for (int i = visited % 7; i < 3000; i += 7) batch.put_sealed(row_key(i), 300);
        batch.put_sealed("new" + std::to_string(visited), 10'000);
      });
    return value.size() == 200 ? check_sealed(key, value) : "it is of a later snapshot";
  };
  file.with_snapshot([&](const Meta& meta) {
    auto report = walk(file.fd(), file.path(), meta, visit).value();
    EXPECT_TRUE(report.sound()) << report.damage[0];
    EXPECT_EQ(report.rows, 3000u);
  });
}

TEST(PageWalk, CommitsOfAnotherThreadDoNotDisturbIt) {
  LmdbTestFile file;
  auto rewrite = [&](std::uint64_t round) {
    file.commit([&](auto& batch) {
      for (std::uint64_t i = round % 5; i < 1000; i += 5) batch.put_sealed(row_key(i), 50 + (round * 37 + i) % 3000);
    });
  };
  for (std::uint64_t round = 0; round < 5; ++round) rewrite(round);
  std::jthread writer([&](std::stop_token stop) {
    for (std::uint64_t round = 0; !stop.stop_requested(); ++round) rewrite(round);
  });
  for (int i = 0; i < 50; ++i) {
    auto report = file.walk_sealed();
    ASSERT_TRUE(report.sound()) << report.damage[0];
    ASSERT_EQ(report.rows, 1000u);
  }
}

// Bytes that nothing refers to may be flipped unnoticed; then the rows are the same. Nothing may crash.
TEST(PageWalk, EveryFlippedByteIsReportedOrChangesNoRow) {
  Bytes bytes = varied_image(200, 4);
  FileImage image(bytes);
  auto txnid = image.newest_txnid();
  auto sound = judge(image, txnid);
  ASSERT_TRUE(sound.clean());
  std::uint64_t reported = 0;
  for (std::uint64_t i = 0; i < bytes.size(); ++i) {
    // Metas and the headers and node offsets at the start of pages are few and matter most.
    if (i > 2 * 4096 && i % 4096 > 48 && i % 7 != 0) continue;
    auto flipped = static_cast<char>(bytes[i] ^ (i % 3 == 0 ? 0xff : 1 << i % 8));
    image.write(i, {&flipped, 1});
    auto verdict = judge(image, txnid);
    reported += !verdict.clean();
    ASSERT_TRUE(!verdict.clean() || verdict.rows_digest == sound.rows_digest) << "byte " << i;
    image.write(i, {&bytes[i], 1});
  }
  EXPECT_GT(reported, 3000u);
}

TEST(PageWalk, GarbagePagesNeverCrashIt) {
  Bytes bytes = varied_image(1500, 8);
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) {
    FileImage image(bytes);
    auto txnid = image.newest_txnid();
    auto pages = bytes.size() / 4096;
    for (auto left = 1 + random() % 8; left > 0; --left) {
      auto offset = (2 + random() % (pages - 2)) * 4096;
      switch (random() % 4) {
        case 0:  // Noise that keeps the page's number and flags, so that it is looked into.
          for (std::uint64_t at = offset + 12; at < offset + 4096; at += 8) image.write_number(at, random());
          break;
        case 1:  // Noise in the node offsets only.
          for (std::uint64_t at = offset + 16; at < offset + 64; at += 2)
            image.write_number(at, static_cast<std::uint16_t>(random() % 4200));
          break;
        case 2:  // Another page's content under this page's number.
          image.write(offset + 8, BytesView(bytes).substr((2 + random() % (pages - 2)) * 4096 + 8, 4088));
          break;
        default:  // Small numbers everywhere: links and sizes that look possible.
          for (std::uint64_t at = offset + 16; at < offset + 4096; at += 8)
            if (random() % 8 == 0) image.write_number(at, random() % 300);
      }
    }
    judge(image, txnid);
  }
}

}  // namespace
}  // namespace perdure::lmdb
