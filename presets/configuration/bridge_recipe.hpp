#pragma once
// Private to presets: a recipe of Megatron-Bridge.

#include <string>

#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// A program that trains: _pretrain_common's recipe, changed in all that decides memory or time, on
/// made-up tokens. The model is that of the hub; one that is not there is left to be filled in.
/// Source: Megatron-Bridge @067f987df recipes/common.py, recipes/llama/h100/llama3.py.
std::string write_bridge_recipe(const Problem& problem);

}  // namespace zeroplan
