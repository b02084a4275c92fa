// product_hashes.h - hashes of matrix products.
#pragma once

#include "hash_support.h"

namespace octavo {

// Gated products of normed rows of type `dtype`, with weights of every format.
void hash_gated_products(Random& random, DType dtype);

// Products of bfloat16 rows with weights of every quantised format. Every instruction set must print
// the same lines, which begin with "quantised". Returns the number of products that differ from
// the reference (kernels/testing/integer_reference.h) and reports each on stderr.
int hash_quantised_products(Random& random);

}  // namespace octavo
