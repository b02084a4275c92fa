#include "base/service_notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace octavo {

bool notify_service(std::string_view state) {
  const char* name = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (name == nullptr || (*name != '/' && *name != '@')) return false;
  const size_t length = std::strlen(name);
  if (length >= sizeof(address.sun_path)) return false;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name, length);
  if (*name == '@') address.sun_path[0] = '\0';
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  if (socket < 0) return false;
  const auto address_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  const ssize_t sent = ::sendto(socket, state.data(), state.size(), 0,
                                reinterpret_cast<const sockaddr*>(&address), address_bytes);
  ::close(socket);
  return sent == static_cast<ssize_t>(state.size());
}

}  // namespace octavo
