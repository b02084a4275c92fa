// service_notify.h - tells the service manager that started this process how it is (sd_notify).
#pragma once

#include <string_view>

namespace octavo {

// Sends lines such as "READY=1" to the socket that NOTIFY_SOCKET names: a path, or @name for an
// abstract one. True when it was sent; without a manager that listens nothing happens.
bool notify_service(std::string_view state);

}  // namespace octavo
