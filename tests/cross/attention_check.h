// attention_check.h - random batches of bfloat16 attention against the reference.
#pragma once

namespace octavo {

// The number of random batches (kernels/testing/attention_trial.h) with a row that differs from the
// reference on the active instruction set; reports each on stderr.
int check_attention(int batches);

}  // namespace octavo
