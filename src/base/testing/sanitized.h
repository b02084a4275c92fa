// sanitized.h - sanitized builds are not optimised, so randomised tests run fewer cases there and time limits are longer.
#pragma once

namespace octavo {

#ifdef OCTAVO_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace octavo
