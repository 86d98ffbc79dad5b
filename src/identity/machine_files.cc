// The kernel's files about the machine, and the three shapes that most of them have.
#include "identity/machine_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/files/descriptor.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr size_t kMaxBytes = 4 << 20;
constexpr int64_t kMaxCpus = 1 << 16;

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

}  // namespace

std::filesystem::path MachineFiles::resolve(std::string_view path) const {
  return root_ / path.substr(path.find_first_not_of('/'));
}

std::optional<std::string> MachineFiles::read(std::string_view path) const {
  // Not read_file: these files have no size, and a missing one is an ordinary answer.
  const Descriptor file(::open(resolve(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.ok()) return std::nullopt;
  std::string content;
  char block[1 << 14];
  while (true) {
    const ssize_t n = ::read(file.get(), block, sizeof block);
    if (n < 0) return std::nullopt;
    if (n == 0) return content;
    content.append(block, static_cast<size_t>(n));
    if (content.size() > kMaxBytes) return std::nullopt;
  }
}

std::optional<std::string> MachineFiles::line(std::string_view path) const {
  const auto content = read(path);
  if (!content) return std::nullopt;
  const std::string_view first = trim(std::string_view(*content).substr(0, content->find('\n')));
  if (first.empty()) return std::nullopt;
  return std::string(first);
}

std::optional<int64_t> MachineFiles::integer(std::string_view path) const {
  const auto text = line(path);
  return text ? parse_integer(*text) : std::nullopt;
}

std::vector<std::string> MachineFiles::list(std::string_view path) const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator it(resolve(path), error);
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::map<std::string, std::string> parse_key_values(std::string_view text) {
  std::map<std::string, std::string> values;
  for (const std::string& line : split(text, '\n')) {
    if (trim(line).empty()) break;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    values.emplace(trim(std::string_view(line).substr(0, colon)),
                   trim(std::string_view(line).substr(colon + 1)));
  }
  return values;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  text = trim(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::vector<int64_t> parse_cpu_list(std::string_view text) {
  std::vector<int64_t> cpus;
  if (trim(text).empty()) return cpus;
  for (const std::string& part : split(trim(text), ',')) {
    const size_t dash = part.find('-');
    const auto first = parse_integer(std::string_view(part).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : parse_integer(std::string_view(part).substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMaxCpus) return {};
    for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace assay
