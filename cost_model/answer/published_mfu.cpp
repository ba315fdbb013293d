// Has anyone been as fast? Front door: faster_than_published.
#include "cost_model/answer/published_mfu.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cost_model/kernel/flops.hpp"
#include "cost_model/kernel/gemm.hpp"
#include "cost_model/runtime/measured_bands.hpp"

namespace zeroplan {
namespace {

constexpr PublishedMfu published[] = {
    {"Volta", 16, 0.3861, "bigscience-tr3m-1b3-v100-32-tp1pp1dp8-mbs1-none",
     "BigScience's 1.3B on 32 V100"},
    {"Ampere", 16, 0.6268, "foundry-3b-a10080gb-s512-g8-mb40-104", "llm-foundry's 3B on 8 A100"},
    {"Hopper", 16, 0.5425, "dgxc-25.05-grok1-H100-512g-bf16", "NVIDIA's Grok-1 on 512 H100"},
    {"Hopper", 8, 0.4279, "dgxc-25.02-llama3.1-405b-L42-H100-192g-fp8",
     "NVIDIA's 42 layers of Llama 3.1 405B on 192 H100"},
    {"Blackwell", 16, 0.4669, "dgxc-25.05-grok1-GB200-512g-bf16", "NVIDIA's Grok-1 on 512 GB200"},
    {"Blackwell", 8, 0.4361, "mbridge-26.04.01-pretrain-LLAMA31_405B-GB200-256g-FP8-171",
     "NVIDIA's Llama 3.1 405B on 256 GB200"},
    {"Blackwell", 4, 0.2988, "mbridge-26.04.01-pretrain-LLAMA31_405B-GB200-256g-NVFP4-173",
     "NVIDIA's Llama 3.1 405B on 256 GB200"},
    {"Blackwell Ultra", 16, 0.2540, "mbridge-26.02-pretrain-GPTOSS120B-GB300-64g-BF16-306",
     "NVIDIA's GPT-OSS 120B on 64 GB300"},
    {"Blackwell Ultra", 8, 0.4715, "mbridge-26.04.01-pretrain-LLAMA3_70B-GB300-64g-FP8-161",
     "NVIDIA's Llama 3 70B on 64 GB300"},
    {"Blackwell Ultra", 4, 0.2215, "mbridge-26.04-pretrain-LLAMA3_70B-GB300-64g-NVFP4-208",
     "NVIDIA's Llama 3 70B on 64 GB300"},
};

}  // namespace

std::optional<PublishedMfu> best_published_mfu(const Problem& p) {
  const auto* found = std::ranges::find_if(published, [&](const PublishedMfu& known) {
    return known.architecture == p.cluster.gpu.architecture &&
           known.bits == product_bits(p.training.precision);
  });
  if (found == std::ranges::end(published)) return std::nullopt;
  return *found;
}

double causal_mfu(const Problem& p, double step_seconds) {
  const double available = static_cast<double>(p.cluster.gpus) * step_seconds *
                           peak_flops(p.cluster.gpu, p.training.precision);
  return step_flops(p, ScoreCount::causal).model / available;
}

std::optional<std::string> faster_than_published(const Problem& p, double step_seconds) {
  const std::optional<PublishedMfu> best = best_published_mfu(p);
  if (!best || code_of(p).counts_only) return std::nullopt;
  const double mfu = causal_mfu(p, step_seconds);
  if (mfu <= best->mfu) return std::nullopt;
  return fmt::format(
      "the step is faster than any that was published: MFU {:.1f} %, where the best run on {} in "
      "{} "
      "bits, {}, reached {:.1f} %",
      100 * mfu, best->architecture, best->bits, best->who, 100 * best->mfu);
}

}  // namespace zeroplan
