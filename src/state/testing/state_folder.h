// state_folder.h - for tests: an empty folder that is removed at the end.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/error.h"

namespace octavo::state {

class StateFolder {
 public:
  StateFolder() : path_((std::filesystem::temp_directory_path() / "octavo-state-XXXXXX").string()) {
    OCTAVO_CHECK(::mkdtemp(path_.data()) != nullptr);
  }
  ~StateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace octavo::state
