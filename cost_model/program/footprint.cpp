// What does a block leave and need at most? Front door: fold.
#include "cost_model/program/footprint.hpp"

namespace zeroplan {

Footprint fold(const Block& block,
               const std::vector<Event>& events,
               Phase phase,
               Borrowed borrowed,
               BackwardPart part) {
  Footprint result;
  result.peak.phase = phase;
  for (const Event& event : events) {
    if (!belongs(event, part)) continue;
    const TensorSpec& spec = block.tensors[static_cast<std::size_t>(event.tensor)];
    if (event.allocates) {
      result.left[spec.category] += spec.bytes;
      raise(result.peak, {result.left, phase, spec.name});
    } else if (!(borrowed.output_grad && event.tensor == Block::output_grad) &&
               !(borrowed.input && event.tensor == Block::input)) {
      result.left[spec.category] -= spec.bytes;
    }
  }
  return result;
}

std::shared_ptr<const FoldedBlock> folded(Block block, bool loss) {
  FoldedBlock result{.block = std::move(block), .loss = loss};
  const Block& b = result.block;
  result.forward = fold(b, b.forward, forward_phase(result));
  result.forward_at_border = fold(b, b.forward, forward_phase(result), {.input = true});
  for (const BackwardPart part :
       {BackwardPart::whole, BackwardPart::input_gradient, BackwardPart::weight_gradient}) {
    for (const Borrowed borrowed :
         {Borrowed{}, Borrowed{.input = true}, Borrowed{.output_grad = true},
          Borrowed{.input = true, .output_grad = true}}) {
      result.backward.at(FoldedBlock::index(part, borrowed)) =
          fold(b, b.backward, backward_phase(result), borrowed, part);
    }
  }
  return std::make_shared<const FoldedBlock>(std::move(result));
}

}  // namespace zeroplan
