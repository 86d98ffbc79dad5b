// For tests: a folder that stands for a machine's root.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "identity/machine_files.h"

namespace assay {

class FakeMachine {
 public:
  FakeMachine() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(testing::TempDir()) /
            (std::string("machine_") + info->test_suite_name() + "_" + info->name() + "_" +
             std::to_string(::getpid()));
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~FakeMachine() {
    std::error_code error;
    std::filesystem::remove_all(root_, error);
  }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  FakeMachine& put(const std::string& path, const std::string& content) {
    const std::filesystem::path file = root_ / path.substr(1);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
    return *this;
  }
  MachineFiles files() const { return MachineFiles(root_); }

 private:
  std::filesystem::path root_;
};

}  // namespace assay
