// socket_folder.h - the folder of the children's Unix sockets, which only this user can enter.
// Removed with its contents on destruction. No MLX.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace octavo::front {

class SocketFolder {
 public:
  // In TMPDIR or /tmp. Throws SetupError.
  SocketFolder();
  ~SocketFolder();
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;

  // A path of the folder, short enough for a socket.
  std::string socket(uint64_t number) const;

 private:
  std::filesystem::path path_;
};

}  // namespace octavo::front
