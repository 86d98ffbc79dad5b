// For tests: the GGUF file of a tiny checkpoint, its tensors in any formats.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "engine/model/tiny_gguf.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::engine {

// Removed at the end.
class GgufOf {
 public:
  GgufOf(const TinyCheckpoint& folder,
         const std::function<WeightFormat(const std::string&)>& format)
      : path_(folder.folder().string() + ".gguf") {
    const auto checkpoint = Checkpoint::open(folder.folder());
    EXPECT_TRUE(checkpoint) << checkpoint.error().message;
    EXPECT_TRUE(write_file(path_, gguf_file(*checkpoint, format)));
  }
  ~GgufOf() { std::filesystem::remove(path_); }
  GgufOf(const GgufOf&) = delete;
  GgufOf& operator=(const GgufOf&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Every format that a GGUF file has, a tensor each in turn.
inline std::function<WeightFormat(const std::string&)> formats_in_turn() {
  return [next = size_t{0}](const std::string&) mutable {
    std::vector<WeightFormat> formats;
    for (const FormatTraits& t : kFormats) {
      if (t.gguf_type != kNoGgufType) formats.push_back(t.format);
    }
    return formats[next++ % formats.size()];
  };
}

// Root of the mean squared distance of logits, over that of the expected ones.
inline double logits_distance(const std::vector<float>& found, const std::vector<float>& expected) {
  double error = 0, size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double off = double{found[i]} - double{expected[i]};
    error += off * off;
    size += double{expected[i]} * double{expected[i]};
  }
  return std::sqrt(error / size);
}

}  // namespace assay::engine
