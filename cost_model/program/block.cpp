// What does a block allocate, and when? Front door: BlockWriter.
#include "cost_model/program/block.hpp"

namespace zeroplan {
namespace {

Bytes rounded(Bytes bytes) {
  return Bytes{round_up(bytes.count(), allocation_unit)};
}

}  // namespace

BlockWriter::BlockWriter(Bytes input, Bytes output) {
  block_.tensors = {{"output", rounded(output), Category::activations},
                    {"output gradient", rounded(output), Category::temporaries},
                    {"input gradient", rounded(input), Category::temporaries},
                    {"input", rounded(input), Category::activations}};
}

Tensor BlockWriter::allocate(std::string_view name, Bytes bytes, Category category, Stream stream) {
  if (bytes == Bytes{}) return none;
  block_.tensors.push_back({name, rounded(bytes), category, stream});
  const auto tensor = static_cast<Tensor>(block_.tensors.size() - 1);
  write(tensor, true);
  return tensor;
}

void BlockWriter::carry(const Carried& kind, Bytes bytes, bool allocates) {
  if (bytes == Bytes{}) return;
  block_.tensors.push_back({kind.name, rounded(bytes), kind.category, kind.stream, true});
  write(static_cast<Tensor>(block_.tensors.size() - 1), allocates);
}

}  // namespace zeroplan
