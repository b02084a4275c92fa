// end_with_stdin.h - ends a server with the process that started it. No MLX.
#pragma once

namespace octavo {

// Starts a thread that reads stdin. At its end, it sends this process SIGTERM, and ends it if it
// still runs 5 seconds later: the process that held the other end is gone, and its ranks with it.
void end_with_stdin();

}  // namespace octavo
