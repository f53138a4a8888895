#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace perdure::transcript {

namespace fs = std::filesystem;

/// A directory for one test.
class ScratchDirectory : public ::testing::Test {
 protected:
  ScratchDirectory() {
    std::string made = fs::canonical(::testing::TempDir()).string() + "/transcript-XXXXXX";
    directory_ = ::mkdtemp(made.data());
  }
  ~ScratchDirectory() override { fs::remove_all(directory_); }

  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  static void append(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::app) << bytes;
  }

  std::string directory_;
};

}  // namespace perdure::transcript
