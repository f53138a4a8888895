// One line of a transcript of a coding session, JSON as Claude Code writes it, and what is kept of it.
//
// A line is looked at as far as something of it is kept: it must be an object with its brackets closed, in UTF-8 as a
// whole, and what is kept of it must be sound. Members that nobody asks for are passed over, whatever they hold.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/time.h"

namespace perdure::transcript {

/// Outputs of tools are cut behind so many characters (Unicode code points).
inline constexpr std::size_t kOutputCharactersMax = 50'000;
/// Ids become parts of keys: what is longer is no id.
inline constexpr std::size_t kIdBytesMax = 200;

struct ToolResult {
  std::string id = {};      ///< That of the call.
  std::string output = {};  ///< All its text items, with an empty line between them.
  bool is_error = false;
  bool cut = false;  ///< More output was there.
};

struct ToolCall {
  std::string id = {}, name = {};
  /// As it was written, with the halves of surrogate pairs replaced: JSON, but not always such that a Value could be
  /// made of it. "null" if there was none.
  std::string input = "null";
  std::optional<ToolResult> answer = {};  ///< That of a later entry, if both are stored together; see Batch::add.
};

/// Why a line is skipped that is no entry of any kind, and so worth a word in the log.
inline constexpr std::string_view kMalformed = "malformed";

/// All text in it is UTF-8: a half of a surrogate pair, which JSON may hold, becomes U+FFFD.
struct Entry {
  enum class Kind {
    kMessage,
    kTitle,
    kSkipped,
  };
  Kind kind = Kind::kSkipped;
  std::string uuid = {};            ///< 1 to kIdBytesMax bytes for a message.
  std::optional<WallTime> at = {};  ///< Nothing if it was missing or malformed.
  bool is_user = false;
  std::string body = {}, thinking = {};  ///< All items of their sort that are not blank, an empty line between them.
  std::vector<ToolCall> tools = {};      ///< Of messages of the assistant.
  std::vector<ToolResult> results = {};  ///< Of messages of the user, whose body then is empty.
  bool cut = false;                      ///< More than is kept was there; see Batch::add.
  std::string title = {};                ///< Of kTitle.
  std::string_view why = {};             ///< Of kSkipped: "blank", kMalformed, "no uuid", ...
};

/// Reads entries, one after another. Keeps its buffers between them, so one for each thread is enough. Movable.
class EntryReader {
 public:
  EntryReader();
  ~EntryReader();
  EntryReader(EntryReader&&) noexcept;
  EntryReader& operator=(EntryReader&&) noexcept;

  /// What is kept of `line`, behind which kLinePadding bytes are readable, whatever they are (see lines.h). Whatever it
  /// holds, it ends in an Entry: a line that is of no use is skipped.
  Entry read(std::string_view line);

 private:
  struct Parsers;
  std::unique_ptr<Parsers> parsers_;
};

}  // namespace perdure::transcript
