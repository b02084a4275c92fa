// connection.h - a client connection: reads requests one after the other, within limits, and
// dispatches them. I/O thread only.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "server/http/exchange.h"

namespace octavo::server {

class Router;
class ServerContext;

// Serves the connection until either side ends it.
Awaitable<void> serve_connection(boost::asio::ip::tcp::socket socket, ServerContext& context,
                                 const Router& router);

}  // namespace octavo::server
