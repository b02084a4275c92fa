// socket_folder.h - the folder of the children's Unix sockets, which only this user can enter.
// Removed with its contents on destruction, or by the next one after a crash. No MLX.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace octavo::front {

class SocketFolder {
 public:
  // In TMPDIR or /tmp. Removes the folders there that processes of this user have left behind.
  // Throws SetupError.
  SocketFolder();
  ~SocketFolder();
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;

  // A path of the folder, short enough for a socket.
  std::string socket(uint64_t number) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  // Of a file in the folder, which is locked while this process runs: a folder whose file is not
  // locked was left behind.
  int lock_ = -1;
};

}  // namespace octavo::front
