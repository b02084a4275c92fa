// service_notify.h - reports this process's state to its service manager (sd_notify).
#pragma once

#include <string_view>

namespace octavo {

// Sends lines such as "READY=1" to the socket NOTIFY_SOCKET: a path, or @name for an abstract
// socket. Returns whether they were sent; without a service manager, does nothing.
bool notify_service(std::string_view state);

}  // namespace octavo
