#pragma once
// Private to presets: how torchtitan's configuration says what is multiplied in 8 bits.

#include <string>
#include <string_view>

#include "cost_model/question/problem.hpp"
#include "presets/configuration/mapping.hpp"

namespace zeroplan::titan_float8 {

// torchtitan 0.2.2 refuses the names that these had before (config/manager.py).
inline constexpr std::string_view converter = "quantize.linear.float8";
inline constexpr std::string_view gather = "float8.enable_fsdp_float8_all_gather";
inline constexpr std::string_view gather_key =
    "quantize.linear.float8.enable_fsdp_float8_all_gather";
inline constexpr std::string_view recipe_key = "quantize.linear.float8.recipe_name";

/// The recipe that a file has to name; empty in other precisions, where the day's is meant, and of
/// linears that are not torchao's.
std::string said_recipe(const Problem& problem);

/// Whether weights are multiplied in fp8, and by which recipe: by a converter's name, which became
/// longer, or in Python by its class. Others are refused: what they do is another precision.
bool read_converters(Entries& entries, Meaning& meaning);

}  // namespace zeroplan::titan_float8
