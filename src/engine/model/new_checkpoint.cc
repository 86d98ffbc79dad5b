// Whatever was written is known by name, so that a failure leaves nothing behind.
#include "engine/model/new_checkpoint.h"

#include <unistd.h>

#include "base/text/text.h"

namespace assay::engine {

namespace fs = std::filesystem;

NewCheckpoint::~NewCheckpoint() {
  // A file that can't be removed stays: the error that led here is the one to tell.
  for (const std::string& name : written_) static_cast<void>(inside_->remove(name));
  std::error_code ignored;
  if (made_folder_) fs::remove(folder_, ignored);
}

void NewCheckpoint::keep() {
  written_.clear();
  made_folder_ = false;
}

Status NewCheckpoint::open_folder() {
  std::error_code error;
  const bool existed = fs::exists(folder_, error);
  if (existed && (!fs::is_directory(folder_, error) || !fs::is_empty(folder_, error) || error)) {
    return bad_input("{}: expected a new or empty folder, found one with something in it",
                     folder_.string());
  }
  if (const Status made = files_.make_folder(folder_); !made) {
    return std::unexpected(Error{ErrorKind::kBadInput, made.error().message});
  }
  made_folder_ = !existed;
  if (::access(folder_.c_str(), W_OK | X_OK) != 0) {
    return bad_input("{}: expected a folder to write to, found one without that permission",
                     folder_.string());
  }
  ASSAY_TRY(inside_, files_.open_folder(folder_));
  return {};
}

Status NewCheckpoint::check_space(uint64_t bytes) const {
  std::error_code error;
  const fs::space_info space = fs::space(folder_, error);
  if (error || space.available >= bytes) return {};
  return environment_error("{}: expected {} of free space, found {}", folder_.string(),
                           format_bytes(static_cast<double>(bytes)),
                           format_bytes(static_cast<double>(space.available)));
}

Status NewCheckpoint::write_small(std::string_view name, std::string_view content) {
  written_.emplace_back(name);
  return inside_->write_atomic(written_.back(), content);
}

Result<std::unique_ptr<AppendFile>> NewCheckpoint::open_file(const std::string& name) {
  written_.push_back(name);
  return inside_->open_append(name);
}

}  // namespace assay::engine
