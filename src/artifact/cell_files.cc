// Temporary names, and the renames that end them.
#include "artifact/cell_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace assay {
namespace {

std::string parent_of(const std::string& name) {
  return name.substr(0, name.rfind('/'));
}

}  // namespace

Status CellFiles::write(const std::string& name, std::string_view content) {
  std::string temporary = temporary_name(name);
  ASSAY_CHECK(folder_.make_folder(parent_of(name)));
  ASSAY_CHECK(folder_.write_new(temporary, content));
  return replace(name, {std::move(temporary), file_entry(content)});
}

Result<std::filesystem::path> CellFiles::offer(const std::string& name) {
  ASSAY_CHECK(folder_.make_folder(parent_of(name)));
  ASSAY_TRY(Descriptor folder, folder_.open_folder(parent_of(name)));
  std::string temporary = temporary_name(name);
  const std::filesystem::path path =
      std::filesystem::path(fmt::format("/proc/{}/fd/{}", ::getpid(), folder.get())) /
      std::filesystem::path(temporary).filename();
  const auto before = offers_.find(name);
  if (before != offers_.end()) ASSAY_CHECK(folder_.remove(before->second.temporary));
  offers_.insert_or_assign(name, Offer{std::move(temporary), std::move(folder)});
  return path;
}

Status CellFiles::take(const std::string& name) {
  const auto offer = offers_.find(name);
  if (offer == offers_.end() || !folder_.has(offer->second.temporary)) return {};
  const std::filesystem::path path = folder_.path_of(name);
  ASSAY_TRY(const Descriptor written, folder_.open_file(offer->second.temporary));
  ASSAY_TRY(FileDigest digest, digest_file(written.get(), path));
  if (::fdatasync(written.get()) != 0) {
    return environment_error("{}: expected to write there, found: {}", path.string(),
                             std::strerror(errno));
  }
  Next next{std::move(offer->second.temporary), std::move(digest)};
  offers_.erase(offer);
  return replace(name, std::move(next));
}

FileEntries CellFiles::pending() const {
  FileEntries entries;
  for (const auto& [name, next] : next_) entries[name] = next.digest;
  return entries;
}

Status CellFiles::publish() {
  for (const auto& [name, next] : next_) ASSAY_CHECK(folder_.rename(next.temporary, name));
  next_.clear();
  for (const auto& [name, offer] : offers_) ASSAY_CHECK(folder_.remove(offer.temporary));
  offers_.clear();
  return {};
}

Status CellFiles::replace(const std::string& name, Next next) {
  const std::string before = std::exchange(next_[name], std::move(next)).temporary;
  return before.empty() ? Status() : folder_.remove(before);
}

}  // namespace assay
