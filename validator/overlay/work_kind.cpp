// Which kind of work is a kernel? Front door: work_of.
#include "validator/overlay/work_kind.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

namespace zeroplan {
namespace {

std::string lower(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

struct Pattern {
  std::string_view part;  // of the name, in lower case
  Work work;
};

// The first that is part of the name decides. Names are as profiles of these libraries show them.
constexpr Pattern patterns[] = {
    // NCCL and RCCL; PyTorch's annotations of them and of Gloo; symmetric memory.
    {"nccl", Work::collective},
    {"rccl", Work::collective},
    {"gloo:", Work::collective},
    {"one_shot_all_reduce", Work::collective},
    {"two_shot_all_reduce", Work::collective},
    {"multimem_all_", Work::collective},
    {"c10d::", Work::other},  // what calls them on the host
    // Kineto's own names of what copy engines do.
    {"memcpy", Work::copies},
    {"memset", Work::copies},
    // Adam of PyTorch, Apex, Transformer Engine and DeepSpeed; Muon's iteration is products.
    {"adam", Work::optimizer},
    {"multitensorcopy", Work::memory_bound},
    {"copyfunctor", Work::memory_bound},
    {"multi_tensor", Work::optimizer},
    {"multitensor", Work::optimizer},
    {"_foreach_", Work::optimizer},
    {"fused_sgd", Work::optimizer},
    {"lamb", Work::optimizer},
    {"l2norm", Work::optimizer},
    // FlashAttention, cuDNN, xFormers, CK.
    {"flash", Work::attention},
    {"fmha", Work::attention},
    {"sdpa", Work::attention},
    {"scaled_dot_product", Work::attention},
    {"attention", Work::attention},
    {"attn", Work::attention},
    // cuBLAS, cuBLASLt, CUTLASS, cuDNN, rocBLAS (Tensile), Triton, DeepGEMM; then PyTorch's.
    {"gemm", Work::products},
    {"nvjet", Work::products},
    {"xmma", Work::products},
    {"cutlass", Work::products},
    {"cublas", Work::products},
    {"splitk", Work::products},
    {"gemv", Work::products},
    {"cijk_", Work::products},
    {"convolve", Work::products},
    {"convolution", Work::products},
    {"conv1d", Work::products},
    {"conv2d", Work::products},
    {"wgrad", Work::products},
    {"dgrad", Work::products},
    {"dot_kernel", Work::products},
    {"triton_mm", Work::products},
    {"triton_tem", Work::products},
    {"scudnn", Work::products},
    {"aten::mm", Work::products},
    {"aten::addmm", Work::products},
    {"aten::bmm", Work::products},
    {"aten::baddbmm", Work::products},
    {"aten::_scaled_mm", Work::products},
    {"aten::_grouped_mm", Work::products},
    {"mkldnn_linear", Work::products},
    // PyTorch, Inductor, Apex, Transformer Engine, Liger, cub.
    {"norm", Work::memory_bound},
    {"ln_fwd", Work::memory_bound},
    {"ln_bwd", Work::memory_bound},
    {"rowwisemoments", Work::memory_bound},
    {"gammabeta", Work::memory_bound},
    {"bn_fw", Work::memory_bound},
    {"bn_bw", Work::memory_bound},
    {"tonhwc", Work::memory_bound},
    {"tonchw", Work::memory_bound},
    {"pool", Work::memory_bound},
    {"elementwise", Work::memory_bound},
    {"softmax", Work::memory_bound},
    {"cross_entropy", Work::memory_bound},
    {"nll_loss", Work::memory_bound},
    {"embedding", Work::memory_bound},
    {"rope", Work::memory_bound},
    {"rotary", Work::memory_bound},
    {"gelu", Work::memory_bound},
    {"silu", Work::memory_bound},
    {"swiglu", Work::memory_bound},
    {"relu", Work::memory_bound},
    {"dropout", Work::memory_bound},
    {"reduce", Work::memory_bound},
    {"catarray", Work::memory_bound},
    {"chunk_cat", Work::memory_bound},
    {"split_with_sizes", Work::memory_bound},
    {"transpose", Work::memory_bound},
    {"permute", Work::memory_bound},
    {"index", Work::memory_bound},
    {"gather", Work::memory_bound},
    {"scatter", Work::memory_bound},
    {"copy", Work::memory_bound},
    {"cast", Work::memory_bound},
    {"fill", Work::memory_bound},
    {"sort", Work::memory_bound},
    {"topk", Work::memory_bound},
    {"scan", Work::memory_bound},
    {"cub::", Work::memory_bound},
    {"triton_poi", Work::memory_bound},
    {"triton_red", Work::memory_bound},
    {"triton_per", Work::memory_bound},
    {"aten::add", Work::memory_bound},
    {"aten::mul", Work::memory_bound},
    {"aten::div", Work::memory_bound},
    {"aten::sub", Work::memory_bound},
    {"aten::sum", Work::memory_bound},
    {"aten::mean", Work::memory_bound},
    {"aten::pow", Work::memory_bound},
    {"aten::rsqrt", Work::memory_bound},
    {"aten::neg", Work::memory_bound},
    {"aten::sigmoid", Work::memory_bound},
    {"aten::cat", Work::memory_bound},
    {"aten::zero_", Work::memory_bound},
};

constexpr std::pair<std::string_view, Collective> collectives[] = {
    {"allreduce", Collective::all_reduce},
    {"allgather", Collective::all_gather},
    {"reducescatter", Collective::reduce_scatter},
    {"alltoall", Collective::all_to_all},
    {"broadcast", Collective::broadcast},
    {"sendrecv", Collective::send_recv},
    {"send", Collective::send_recv},
    {"recv", Collective::send_recv},
};

}  // namespace

Work work_of(std::string_view name) {
  const std::string text = lower(name);
  const auto found = std::ranges::find_if(
      patterns, [&](const Pattern& p) { return text.find(p.part) != std::string::npos; });
  return found == std::end(patterns) ? Work::other : found->work;
}

std::optional<Collective> collective_of(std::string_view name) {
  std::string text = lower(name);
  std::erase(text, '_');
  for (const auto& [part, collective] : collectives) {
    if (text.find(part) != std::string::npos) return collective;
  }
  return std::nullopt;
}

}  // namespace zeroplan
