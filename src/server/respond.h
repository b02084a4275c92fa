// respond.h - runs a generation job and sends its output over the exchange. I/O thread only.
#pragma once

#include <chrono>

#include "api/output_format.h"
#include "server/output_stream.h"

namespace octavo::server {

// Adds the header x-octavo-ignored if fields of the request were ignored.
void add_ignored(const ServerContext& context, const api::IgnoredFields& fields,
                 HttpResponse& response);

// Runs the job and sends its output in that format, streamed or whole, with keep-alive comments
// during long silences.
Awaitable<void> respond(ServerContext& context, Exchange& exchange, const api::GenerationJob& job,
                        api::OutputFormat& format, std::chrono::steady_clock::time_point arrival);
// The same for a job that is never streamed.
Awaitable<void> respond_whole(ServerContext& context, Exchange& exchange,
                              const api::GenerationJob& job, api::WholeFormat& format,
                              std::chrono::steady_clock::time_point arrival);

}  // namespace octavo::server
