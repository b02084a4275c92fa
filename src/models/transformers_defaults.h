// transformers_defaults.h - the keys of config.json that transformers knows, with its defaults. No
// MLX.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace octavo {

// Keys of the configuration class of `model_type` and their defaults; an empty object for an unknown
// type. A multimodal type includes the keys of its usual text_config. "*" has the keys of every
// class, "rope_parameters" those of that object, without defaults.
nlohmann::json transformers_defaults(std::string_view model_type);

// Other names of keys, as {"alias": "key"}.
nlohmann::json transformers_aliases(std::string_view model_type);

}  // namespace octavo
