#include "transcript/lines.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>
#include <vector>

#include "transcript/lines_test_util.h"

namespace perdure::transcript {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TranscriptLines : public ScratchDirectory {
 protected:
  LineReader reader(Position from = {}) {
    auto file = open_transcript(path_, {directory_});
    EXPECT_TRUE(file) << file.error().message;
    return {std::move(*file), from};
  }
  /// All that there is, and where that ends.
  std::vector<std::string> lines(LineReader& reader) {
    std::vector<std::string> all;
    while (true) {
      auto line = reader.next();
      EXPECT_TRUE(line) << line.error().message;
      if (!line || !*line) break;
      all.emplace_back(**line);
    }
    position_ = reader.position();
    return all;
  }
  std::vector<std::string> all_lines(Position from = {}) {
    LineReader one = reader(from);
    return lines(one);
  }

  /// Lines of a kilobyte, so that there are about a thousand of them in what is read at once.
  static std::string number(int i) {
    std::string line;
    while (line.size() < 1'000) line += std::to_string(i) + " ";
    return line;
  }
  static std::string numbered(int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += number(i) + "\n";
    return all;
  }

  std::string path_ = directory_ + "/a.jsonl";
  Position position_;
};

TEST_F(TranscriptLines, EveryWholeLineIsGivenOnce) {  // WORK-16
  write(path_, "one\n\ntwo\r\n  \nthree\n");
  LineReader whole = reader();
  EXPECT_THAT(lines(whole), ElementsAre("one", "", "two\r", "  ", "three"));
  struct stat info{};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(whole.position(), (Position{info.st_dev, info.st_ino, 19, whole.position().tail}));
  EXPECT_EQ(whole.bytes_read(), 19U);
  EXPECT_EQ(whole.restarts(), 0U);
}

TEST_F(TranscriptLines, AnEmptyFileHasNone) {  // WORK-16
  write(path_, "");
  EXPECT_THAT(all_lines(), IsEmpty());
  EXPECT_EQ(position_.offset, 0U);
  append(path_, "one\n");
  LineReader again = reader(position_);
  EXPECT_THAT(lines(again), ElementsAre("one"));
  EXPECT_EQ(again.restarts(), 0U);
}

TEST_F(TranscriptLines, TheOffsetIsBehindTheLineThatWasGiven) {  // WORK-B10
  write(path_, "one\ntwo\n");
  LineReader one = reader();
  EXPECT_EQ(one.position().offset, 0U);
  ASSERT_EQ(*one.next(), "one");
  EXPECT_EQ(one.position().offset, 4U);
  EXPECT_THAT(all_lines(one.position()), ElementsAre("two"));
}

TEST_F(TranscriptLines, AHalfWrittenLastLineIsLeftUntilItIsWhole) {  // WORK-B10
  write(path_, "one\ntw");
  LineReader growing = reader();
  EXPECT_THAT(lines(growing), ElementsAre("one"));
  EXPECT_EQ(position_.offset, 4U);
  append(path_, "o\nthr");
  EXPECT_THAT(all_lines(position_), ElementsAre("two"));
  EXPECT_EQ(position_.offset, 8U);
  EXPECT_THAT(lines(growing), ElementsAre("two")) << "the reader itself sees it, too";
  EXPECT_EQ(growing.position().offset, 8U);
}

TEST_F(TranscriptLines, AFileGrownByALineIsReadFromThatLineOn) {  // WORK-B10
  std::string old;
  for (int i = 0; i < 100'000; ++i) old += "a line of the past\n";
  write(path_, old);
  ASSERT_EQ(all_lines().size(), 100'000U);
  append(path_, "new line\n");
  LineReader grown = reader(position_);
  EXPECT_THAT(lines(grown), ElementsAre("new line"));
  EXPECT_EQ(grown.bytes_read(), 9U);
  EXPECT_EQ(grown.restarts(), 0U);
  EXPECT_EQ(position_.offset, old.size() + 9);
  LineReader same = reader(position_);
  EXPECT_THAT(lines(same), IsEmpty());
  EXPECT_EQ(same.bytes_read(), 0U);
}

TEST_F(TranscriptLines, ATruncatedFileIsReadAgain) {  // WORK-B10
  write(path_, "one\ntwo\n");
  all_lines();
  write(path_, "new\n");
  LineReader again = reader(position_);
  EXPECT_EQ(again.restarts(), 1U);
  EXPECT_THAT(lines(again), ElementsAre("new"));
  write(path_, "");
  LineReader empty = reader(position_);
  EXPECT_EQ(empty.restarts(), 1U);
  EXPECT_THAT(lines(empty), IsEmpty());
  EXPECT_EQ(position_.offset, 0U);
}

TEST_F(TranscriptLines, AReplacedFileIsReadAgain) {  // WORK-B10
  write(path_, "one\ntwo\n");
  all_lines();
  write(path_ + ".new", "1ne\n2wo\nthree\n");
  fs::rename(path_ + ".new", path_);
  LineReader again = reader(position_);
  EXPECT_EQ(again.restarts(), 1U);
  EXPECT_THAT(lines(again), ElementsAre("1ne", "2wo", "three"));
}

TEST_F(TranscriptLines, AFileRewrittenInPlaceIsReadAgain) {  // WORK-B10
  write(path_, "one\ntwo\n");
  all_lines();
  write(path_, "another\nlonger\n");
  position_.offset = 7;
  LineReader again = reader(position_);
  EXPECT_EQ(again.restarts(), 1U);
  EXPECT_THAT(lines(again), ElementsAre("another", "longer"));
}

TEST_F(TranscriptLines, AFileOfTheSameSizeAndInodeWithOtherLinesIsReadAgain) {  // WORK-B10
  for (std::size_t longer : {0, 1'000}) {
    std::string rest(longer, 'x');
    write(path_, "one" + rest + "\ntwo\n");
    all_lines();
    write(path_, "one" + rest + "\n2wo\n");
    LineReader again = reader(position_);
    EXPECT_EQ(again.restarts(), 1U);
    EXPECT_EQ(lines(again).back(), "2wo");
    EXPECT_EQ(reader(position_).restarts(), 0U);
    position_.tail = 0;
    EXPECT_EQ(reader(position_).restarts(), 0U) << "of one who did not know of it";
  }
}

TEST_F(TranscriptLines, AFileOfAnotherDeviceIsReadAgain) {  // WORK-B10
  write(path_, "one\n");
  all_lines();
  ++position_.device;
  EXPECT_EQ(reader(position_).restarts(), 1U);
}

TEST_F(TranscriptLines, AnOffsetThatNoFileCanHaveStartsAgain) {  // WORK-B10
  write(path_, "one\n");
  all_lines();
  position_.offset = ~std::uint64_t{0};
  EXPECT_THAT(all_lines(position_), ElementsAre("one"));
}

TEST_F(TranscriptLines, AFileThatShrinksWhileItIsReadIsReadAgain) {  // WORK-B10
  write(path_, numbered(3'000));
  LineReader shrinking = reader();
  ASSERT_EQ(**shrinking.next(), number(0));
  write(path_, "one\ntw");
  auto rest = lines(shrinking);
  EXPECT_LT(rest.size(), 2'000U);
  EXPECT_EQ(rest.back(), "one");
  EXPECT_EQ(shrinking.restarts(), 1U);
  EXPECT_EQ(position_.offset, 4U);
  EXPECT_EQ(reader(position_).restarts(), 0U);
}

TEST_F(TranscriptLines, AFileThatIsRewrittenWhileItIsReadIsReadAgain) {  // WORK-B10
  // However much of it was read, and also if it has become longer.
  for (int read : {1, 1'000, 1'500, 2'999, 3'000}) {
    write(path_, numbered(3'000));
    LineReader rewritten = reader();
    for (int i = 0; i < read; ++i) ASSERT_EQ(**rewritten.next(), number(i));
    write(path_, "new\n" + numbered(4'000));
    auto rest = lines(rewritten);
    ASSERT_GT(rest.size(), 4'000U) << read;
    EXPECT_EQ(rest[rest.size() - 4'001], "new") << read;
    EXPECT_EQ(rewritten.restarts(), 1U);
    EXPECT_EQ(position_.offset, fs::file_size(path_));
    EXPECT_EQ(reader(position_).restarts(), 0U);
  }
}

TEST_F(TranscriptLines, AFileThatWasRewrittenBehindALongLineIsReadAgain) {  // WORK-B10, WORK-U7
  const std::string half(kLineBytesMax + kReadBytes, 'x');
  write(path_, "one\n" + half);
  LineReader rewritten = reader();
  EXPECT_THAT(lines(rewritten), ElementsAre("one"));
  write(path_, "one\n" + half.substr(1) + "y\ntwo\n");
  EXPECT_THAT(all_lines(position_), ElementsAre("one", "two"));
  EXPECT_THAT(lines(rewritten), ElementsAre("one", "two"));
  EXPECT_EQ(rewritten.restarts(), 1U);
}

TEST_F(TranscriptLines, AFileThatWasRewrittenAfterItWasReadIsNotKnownByWhatItHasNow) {  // WORK-B10
  write(path_, "one\n");
  LineReader reading = reader();
  ASSERT_EQ(**reading.next(), "one");
  write(path_, "two\nthree\n");
  EXPECT_THAT(all_lines(reading.position()), ElementsAre("two", "three"));
}

TEST_F(TranscriptLines, WhoGoesBackFindsAnotherFileAtItsBeginning) {  // WORK-B10
  write(path_, numbered(3'000));
  LineReader reading = reader();
  for (int i = 0; i < 10; ++i) ASSERT_EQ(**reading.next(), number(i));
  const Position tenth = reading.position();
  ASSERT_EQ(lines(reading).size(), 2'990U);
  reading.go_back(tenth);
  EXPECT_EQ(reading.restarts(), 0U);
  ASSERT_EQ(lines(reading).size(), 2'990U);
  write(path_, "new\n" + numbered(3'000));
  reading.go_back(tenth);
  EXPECT_EQ(reading.restarts(), 1U);
  EXPECT_EQ(lines(reading).size(), 3'001U);
}

TEST_F(TranscriptLines, LinesOfAnyLengthComeWhole) {  // WORK-16
  std::mt19937 random(11);
  std::vector<std::string> all;
  std::string text;
  for (std::size_t size : {std::size_t{0}, std::size_t{1}, kReadBytes - 1, kReadBytes, kReadBytes + 1, std::size_t{3},
                           5 * kReadBytes, std::size_t{7}, 2 * kReadBytes - 5, kReadBytes / 3}) {
    all.emplace_back(size, static_cast<char>('a' + random() % 26));
    text += all.back() + "\n";
  }
  for (int i = 0; i < 5000; ++i) {
    all.emplace_back(random() % 2000, static_cast<char>('a' + random() % 26));
    text += all.back() + "\n";
  }
  write(path_, text);
  LineReader whole = reader();
  EXPECT_TRUE(lines(whole) == all);
  EXPECT_EQ(whole.bytes_read(), text.size());
  EXPECT_EQ(position_.offset, text.size());
}

TEST_F(TranscriptLines, ThePaddingBehindALineIsReadable) {  // WORK-16
  // The last line ends where the file does, and the buffer with it.
  write(path_, std::string(kReadBytes - 1, 'x') + "\n" + std::string(kReadBytes - 1, 'y') + "\n");
  LineReader whole = reader();
  for (char expected : {'x', 'y'}) {
    auto line = whole.next();
    ASSERT_TRUE(line && *line);
    ASSERT_EQ((**line)[0], expected);
    unsigned sum = 0;
    for (std::size_t i = 0; i < kLinePadding; ++i)
      sum += static_cast<unsigned char>((*line)->data()[(*line)->size() + i]);
    EXPECT_GE(sum, static_cast<unsigned>('\n'));
  }
}

TEST_F(TranscriptLines, ALineThatIsTooLongIsPassedOver) {  // WORK-U7
  write(path_, "one\n" + std::string(kLineBytesMax, 'x') + "\n" + std::string(kLineBytesMax + 1, 'y') + "\ntwo\n" +
                   std::string(kLineBytesMax + 3 * kReadBytes, 'z') + "\n");
  LineReader whole = reader();
  ASSERT_EQ(*whole.next(), "one");
  ASSERT_EQ((*whole.next())->size(), kLineBytesMax);
  ASSERT_EQ(*whole.next(), "two");
  EXPECT_EQ(whole.long_lines(), 1U);
  ASSERT_EQ(*whole.next(), std::nullopt);
  EXPECT_EQ(whole.long_lines(), 2U);
  EXPECT_EQ(whole.position().offset, fs::file_size(path_)) << "it need not be passed over again";
}

TEST_F(TranscriptLines, ATooLongLineThatIsNotWholeYetIsWaitedFor) {  // WORK-U7
  write(path_, "one\n" + std::string(kLineBytesMax + 2 * kReadBytes, 'y'));
  LineReader growing = reader();
  EXPECT_THAT(lines(growing), ElementsAre("one"));
  EXPECT_EQ(growing.position().offset, fs::file_size(path_)) << "it need not be read again";
  EXPECT_TRUE(growing.position().inside);
  append(path_, "y\ntwo\n");
  EXPECT_THAT(all_lines(position_), ElementsAre("two")) << "by another reader";
  EXPECT_THAT(lines(growing), ElementsAre("two"));
  EXPECT_EQ(growing.long_lines(), 1U);
  EXPECT_EQ(growing.position().offset, fs::file_size(path_));
  EXPECT_FALSE(growing.position().inside);
}

TEST_F(TranscriptLines, OneWithoutEndIsPassedOverInStretches) {  // WORK-U7, WORK-B2
  write(path_, "one\n");
  fs::resize_file(path_, 2 * kPassedAtOnce + kReadBytes);
  LineReader endless = reader();
  ASSERT_EQ(*endless.next(), "one");
  for (std::size_t passed : {kPassedAtOnce, 2 * kPassedAtOnce}) {
    ASSERT_EQ(*endless.next(), "");
    EXPECT_GE(endless.position().offset, passed);
    EXPECT_LT(endless.position().offset, passed + kLineBytesMax);
  }
  ASSERT_EQ(*endless.next(), std::nullopt);
  EXPECT_EQ(endless.bytes_read(), fs::file_size(path_));
}

TEST_F(TranscriptLines, AFileThatCannotBeReadIsUnavailable) {  // WORK-U7
  write(path_, "one\n");
  LineReader closed(TranscriptFile(-1), {});
  auto line = closed.next();
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code, ErrorCode::kUnavailable);
  LineReader write_only(TranscriptFile(::open(path_.c_str(), O_WRONLY | O_CLOEXEC)), {});
  line = write_only.next();
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(write_only.position().offset, 0U);
}

}  // namespace
}  // namespace perdure::transcript
