// Stub of the tile loops for machines without them; free_product() never calls it.
#include "bench/free_product_tiles.h"

namespace octavo::bench {

void pack_free(const uint16_t*, int, int, uint16_t*) {}
void pack_rows(const FreeJob&, int, int) {}
void multiply_box(const FreeJob&, const Box&, float*) {}
void add_sums(const FreeJob&, const float*, const float*, int, int) {}

}  // namespace octavo::bench
