// connection.h - a client connection: reads requests one after the other, within limits, and
// dispatches them. I/O thread only.
#pragma once

#include <memory>

#include "server/http/client_socket.h"
#include "server/http/exchange.h"

namespace octavo::server {

class Router;
class HttpContext;

// Serves the connection until either side ends it.
Awaitable<void> serve_connection(Socket socket, HttpContext& context, const Router& router);

}  // namespace octavo::server
