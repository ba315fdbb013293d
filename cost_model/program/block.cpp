// What does a block allocate, and when? Front door: BlockWriter.
#include "cost_model/program/block.hpp"

namespace zeroplan {
namespace {

Bytes rounded(Bytes bytes) {
  return Bytes{round_up(bytes.count(), allocation_unit)};
}

}  // namespace

BlockWriter::BlockWriter(Bytes output, Bytes gradient) {
  block_.tensors = {{"output", rounded(output), Category::activations},
                    {"output gradient", rounded(gradient), Category::temporaries},
                    {"input gradient", rounded(gradient), Category::temporaries}};
}

Tensor BlockWriter::allocate(std::string_view name, Bytes bytes, Category category) {
  if (bytes == Bytes{}) return none;
  block_.tensors.push_back({name, rounded(bytes), category});
  const auto tensor = static_cast<Tensor>(block_.tensors.size() - 1);
  write(tensor, true);
  return tensor;
}

}  // namespace zeroplan
