// standard_streams.h - descriptors 0, 1 and 2.
#pragma once

namespace octavo {

// Opens those of stdin, stdout and stderr that are closed on /dev/null. Otherwise the next file or
// socket would get that number, and output would be written into it. Call first in main().
void open_closed_standard_streams();

}  // namespace octavo
