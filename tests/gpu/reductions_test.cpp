// What ranks that share a GPU add up, against what the host's do: the same bits.
#include "validator/cuda/reductions.hpp"

#include "tests/gpu/both_devices.hpp"
#include "validator/communicator/combined.hpp"

using namespace zeroplan;
using namespace zeroplan::engine;
using tests::BothDevices;
using tests::Twin;

namespace {

constexpr std::int64_t first = 5;
constexpr std::int64_t last = 200;

template <class Value>
std::vector<void*> buffers(const std::vector<Twin<Value>>& twins, View<Value> Twin<Value>::*where) {
  std::vector<void*> list;
  for (const Twin<Value>& twin : twins) list.push_back((twin.*where).data);
  return list;
}

template <class Value>
void combine_on_host(const std::vector<Twin<Value>>& twins, Reduction reduction) {
  const std::vector<void*> all = buffers(twins, &Twin<Value>::host);
  for (std::int64_t i = first; i < last; ++i) {
    const float value = combined<Value>(all, i, reduction);
    for (const Twin<Value>& twin : twins) store(twin.host.data[i], value);
  }
}

}  // namespace

TEST_CASE("all ranks get the sum or the largest of all buffers, bit for bit") {
  BothDevices both;
  const CudaStream stream;
  const std::vector<Twin<Bf16>> halves{both.halves(7, 33), both.halves(7, 33), both.halves(7, 33)};
  combine_on_host(halves, Reduction::sum);
  combine_bf16(buffers(halves, &Twin<Bf16>::gpu), first, last, stream);
  const Reduction reduction = GENERATE(Reduction::sum, Reduction::maximum);
  const std::vector<Twin<float>> numbers{both.numbers(7, 33), both.numbers(7, 33)};
  combine_on_host(numbers, reduction);
  combine_fp32(buffers(numbers, &Twin<float>::gpu), first, last, reduction, stream);
  stream.synchronize();
  for (const Twin<Bf16>& twin : halves) both.require_close(twin, 0);
  for (const Twin<float>& twin : numbers) both.require_close(twin, 0);
}

TEST_CASE("one rank gets the sum of its part, and the others' buffers stay, bit for bit") {
  BothDevices both;
  const CudaStream stream;
  const std::vector<Twin<Bf16>> twins{both.halves(7, 33), both.halves(7, 33), both.halves(7, 33)};
  const std::vector<void*> on_host = buffers(twins, &Twin<Bf16>::host);
  for (std::int64_t i = first; i < last; ++i) {
    twins[1].host.data[i] = narrow(combined<Bf16>(on_host, i, Reduction::sum));
  }
  sum_into_bf16(twins[1].gpu.data, buffers(twins, &Twin<Bf16>::gpu), first, last, stream);
  stream.synchronize();
  for (const Twin<Bf16>& twin : twins) both.require_close(twin, 0);
}
