// Mappings, and a register of them that a signal handler can read.
#include "base/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "base/files/file_io.h"
#include "base/files/files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr int kExitEnvironment = 3;

// A handler has no argument to be told by, so this is the program's one global state: of each
// living mapping where it lies and its file's name. `begin` is 0 where the place is free, and
// written last.
struct Registered {
  std::atomic<uintptr_t> begin{0};
  std::atomic<bool> taken{false};
  size_t size = 0;
  std::array<char, 512> name{};  // its end, where it is longer
};
// A sharded checkpoint has tens of files. A mapping that finds no place is only not named.
std::array<Registered, 512> registered;

void remember(const void* data, size_t size, const fs::path& path) {
  for (Registered& place : registered) {
    if (place.taken.exchange(true)) continue;
    std::string text = path.string();
    if (text.size() >= place.name.size()) text.erase(0, text.size() - place.name.size() + 1);
    place.name.fill('\0');
    std::ranges::copy(text, place.name.begin());
    place.size = size;
    place.begin.store(reinterpret_cast<uintptr_t>(data), std::memory_order_release);
    return;
  }
}

void forget(const void* data) {
  for (Registered& place : registered) {
    if (place.begin.load() != reinterpret_cast<uintptr_t>(data)) continue;
    place.begin = 0;
    place.taken = false;
    return;
  }
}

void put(const char* text) {
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, text, std::strlen(text));
}

// Async-signal-safe calls only.
void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Registered& place : registered) {
    const uintptr_t begin = place.begin.load(std::memory_order_acquire);
    if (begin == 0 || at < begin || at - begin >= place.size) continue;
    put("assay: ");
    put(place.name.data());
    put(": expected the file to stay as long as it was when it was opened, found it cut short\n");
    ::_exit(kExitEnvironment);
  }
  ::signal(signal, SIG_DFL);  // returning repeats the access
}

FileStamp stamp_of(const struct stat& info) {
  const auto ns = [](const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; };
  return {.inode = info.st_ino,
          .size_bytes = static_cast<uint64_t>(info.st_size),
          .modified_ns = ns(info.st_mtim),
          .changed_ns = ns(info.st_ctim)};
}

}  // namespace

std::string FileStamp::text() const {
  return fmt::format("inode {} size {} modified {} changed {}", inode, size_bytes, modified_ns,
                     changed_ns);
}

Result<FileStamp> file_stamp(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return unreadable(path);
  return stamp_of(info);
}

Result<MappedFile> MappedFile::open(const fs::path& path) {
  ASSAY_TRY(const Descriptor file, open_regular(path));
  return of(file.get(), path);
}

Result<MappedFile> MappedFile::of(int fd, const fs::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return unreadable(path);
  MappedFile mapped;
  mapped.stamp_ = stamp_of(info);
  if (info.st_size == 0) return mapped;
  const auto size = static_cast<size_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return unreadable(path);
  mapped.data_ = static_cast<const std::byte*>(data);
  mapped.size_ = size;
  remember(data, size, path);
  return mapped;
}

MappedFile::~MappedFile() {
  if (!data_) return;
  forget(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::drop_pages() const {
  // Nothing is lost of a mapping that nobody writes to; a kernel that refuses keeps the pages.
  if (data_) ::madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED);
}

void page_in(std::span<const std::byte> bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(bytes.data()) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size();
  void* address = reinterpret_cast<void*>(begin);  // NOLINT(performance-no-int-to-ptr)
#ifdef MADV_POPULATE_READ
  if (::madvise(address, end - begin, MADV_POPULATE_READ) == 0) return;
#endif
  ::madvise(address, end - begin, MADV_WILLNEED);
}

void report_truncated_mappings() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace assay
