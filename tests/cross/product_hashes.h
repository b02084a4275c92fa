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

// The same for bfloat16 weights and kernels/reference/arithmetic/dense_product.h; lines begin with
// "dense". 300 random products, or 10,000 if OCTAVO_SLOW_TESTS is set.
int hash_dense_products(Random& random);

// The same for LoRA adapters and kernels/reference/arithmetic/lora.h; lines begin with "lora".
int hash_lora_products(Random& random);

}  // namespace octavo
