// A checkpoint folder that is being written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/folder.h"
#include "base/result.h"

namespace assay::engine {

// Its files are removed again, and the folder if it is new, unless keep() is called.
class NewCheckpoint {
 public:
  NewCheckpoint(FileSystem& files, std::filesystem::path folder)
      : files_(files), folder_(std::move(folder)) {}
  NewCheckpoint(const NewCheckpoint&) = delete;
  NewCheckpoint& operator=(const NewCheckpoint&) = delete;
  ~NewCheckpoint();
  void keep();

  // bad_input: it is there and isn't empty, or it can't be written to.
  Status open_folder();
  // A full disk is better told before gigabytes are written than after.
  Status check_space(uint64_t bytes) const;
  Status write_small(std::string_view name, std::string_view content);
  Result<std::unique_ptr<AppendFile>> open_file(const std::string& name);

 private:
  FileSystem& files_;
  std::filesystem::path folder_;
  bool made_folder_ = false;
  std::unique_ptr<Folder> inside_;    // folder_, once it is open
  std::vector<std::string> written_;  // by name in it
};

}  // namespace assay::engine
