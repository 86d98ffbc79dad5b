// Numbers of things for people to read.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text/text.h"

namespace assay {

// counted() for the unsigned sizes of containers.
template <std::unsigned_integral Count>
std::string counted(Count count, std::string_view one, std::string_view many = "") {
  return counted(static_cast<int64_t>(count), one, many);
}

// The same for a number that needn't be whole, three digits: "1 CPU", "1.5 CPUs".
std::string counted_about(double count, std::string_view one);

// "27.8M", "1.24G", "512": three digits of a number that has many, of which few matter.
std::string format_count(double count);

}  // namespace assay
