// The types of options' values, one validator each, so that no command takes a value that another
// refuses: a value is the whole text, finite and within its bounds, or the command line is refused
// with the expectation and the finding.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay::cli {

// The most that a count can be without a bound of its own: sums of a few of them overflow nothing.
inline constexpr int64_t kMostCount = 1'000'000'000;
inline constexpr int64_t kMostThreads = 1024;

// An integer in decimal digits, least <= value <= most.
CLI::Validator count_between(int64_t least, int64_t most = kMostCount);
// A finite number, least <= value <= most.
CLI::Validator number_between(double least, double most);
// A share: "2%", "2 %" or "0.02", least <= share <= most. For transform(): the option's text
// becomes the share as a number.
CLI::Validator share_between(double least, double most);
// A seed of random numbers: any integer from 0 to 2^64 - 1.
CLI::Validator seed_number();
// One of these words; a near miss is named.
CLI::Validator word_of(std::vector<std::string> words);
// Takes anything: only tells completion the words that the option's own reader takes.
CLI::Validator known_words(const std::vector<std::string>& words);
// The words of an option with word_of() or known_words(); empty for any other.
std::vector<std::string> words_taken(CLI::Option& option);

// cpu, cuda or cuda:N.
CLI::Validator device_word();
// The path of a folder to write: any text but an empty one, which would read as an option left out.
CLI::Validator folder_path();

// "--name: expected --mode compiled with it, found eager", of the first of these options that was
// given.
Status refuse_given(const std::vector<const CLI::Option*>& options, const std::string& expected,
                    const std::string& found);

}  // namespace assay::cli
