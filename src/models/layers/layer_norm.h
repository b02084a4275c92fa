// layer_norm.h - loads the weights of a layer norm.
#pragma once

#include <initializer_list>
#include <string>

#include "kernels/norm.h"
#include "models/weight_source.h"

namespace octavo {

// Converts the arrays to float32 unless all have one type: kernels take one type for all.
void share_type(std::initializer_list<mx::array*> arrays);

// `name`: of the weights, "model.norm.weight"; the bias, if there is one, is "model.norm.bias".
NormSpec load_layer_norm(WeightSource& source, const std::string& name, int size, bool biased,
                         float eps);

}  // namespace octavo
