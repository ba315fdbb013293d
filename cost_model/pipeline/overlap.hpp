#pragma once
// Behind which computation each runtime hides a collective.

#include "cost_model/network/volume.hpp"

namespace zeroplan {

/// The work that goes on while a collective runs.
enum class Behind {
  nothing,        // its result is needed at once
  products,       // of the same linear: weight gradients while input gradients travel
  parts,          // of the same linear, part by part: all but the first part, or the last
  other_pass,     // of another micro-batch, in the other direction
  attention,      // context parallelism's ring: the next keys travel while these are worked on
  pass,           // of the same direction and micro-batch: the next layer's weights, or the last
                  // one's gradients
  last_backward,  // of the last micro-batch: gradients, as soon as a bucket of them is complete
  first_forward,  // of the next step's first micro-batch: updated weights, before they are read
};

template <>
struct Spellings<Behind> {
  static constexpr std::array<std::string_view, 8> value{
      "nothing",   "weight gradients", "parts of its products", "another micro-batch",
      "attention", "its pass",         "the last backward",     "the first forward"};
};

/// Where the problem's runtime runs this load. Sources stand beside each runtime's rule.
Behind hidden_behind(const Problem& problem, const CollectiveLoad& load);

/// What a load runs beside in a runtime that waits for it: nothing.
Behind waits(const Problem& problem, const CollectiveLoad& load);

}  // namespace zeroplan
