#pragma once
// Why a step goes as it does: what popular texts on ZeRO tell otherwise.

#include "cost_model/explain/story.hpp"

namespace zeroplan {

/// A sentence for each thing that the story shows and that is often told otherwise. Sources: ZeRO
/// (arXiv 1910.02054), sections 5 to 8; what the runtime itself does is in the story.
std::vector<std::string> reasons_of(const Problem& problem, const Story& story);

}  // namespace zeroplan
