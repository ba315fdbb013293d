#pragma once
// Every constant of the law of step time, as one value: what kernels reach, what the host takes,
// what a step adds. A fit tries others by GpuSpec::constants.

#include <array>
#include <string_view>

#include "cost_model/kernel/gpu_constants.hpp"
#include "cost_model/question/cluster.hpp"

namespace zeroplan {

/// Seconds in which the host launches one layer for one micro-batch.
struct HostConstants {
  // Megatron's own layers: the floor of a layer's backward pass, in which the host catches up with
  // what it launched of both passes. vTrain's single-node step times (VIA-Research/vTrain
  // @f8dda84) at any width where the GPU has less to do, and what tp adds to them.
  double local = 2.05e-3;
  double local_per_doubling_of_tp = 0.14e-3;
  // What more launches add where Megatron's fused softmax refuses the shape.
  double plain_softmax = 1.25e-3;

  // Launches of a Transformer Engine layer with four linears and attention; of others in proportion
  // to how many of these they have. Fitted on SimuMax's B200 runs (MooreThreads/SimuMax docs/b200
  // @4dcaae5; script/holdout): of Llama, at tp 8, and of DeepSeek-V2.
  double engine_forward = 2.5e-3;
  double engine_backward = 2.7e-3;
  // What experts add to either pass of a layer, and context parallelism (`context`). Fitted on
  // Megatron-LM's functional tests, whose toys wait for their host alone.
  double experts = 2.2e-3;
  // What the router and what it prepares for dispatch take of `experts`: Qwen3-30B on B200 waits
  // for its host, and graphs of these two parts alone took 2 of 29 seconds away (NVIDIA's tables,
  // 25.11 and 26.02).
  double routing = 0.3e-3;
  double context = 0.8e-3;
  // What is added to either pass where experts' messages travel beside another pass: the layer is
  // launched in parts, whose streams wait for each other (Megatron-LM core/models/common/
  // model_chunk_schedule_plan.py). Fitted on NVIDIA's tables: Qwen3-30B on H100 waits for its host,
  // and took 16 ms a layer and micro-batch so (25.11, 26.02), without 9.6 ms.
  double in_parts = 3.3e-3;
  // Launching one expert's product, with the cast of what it reads. How many tokens an expert has
  // is known when they have arrived: the GPU waits for its products' launches where they take
  // longer than the products. Fitted on NVIDIA's tables (Qwen3-30B on B200 with 16 experts a GPU;
  // Nemotron 3 Super on B300 with 64 was not fitted on). Eight products alone, without casts, took
  // 0.27 ms on Blackwell where one kernel for all took 0.07 (TransformerEngine pull request 3134).
  double expert_product = 60e-6;
  // Hosts of A100 nodes take this much longer: their processors are slower than the B200's. Fitted
  // on Megatron-LM's functional tests.
  double ampere_slowness = 1.5;
  // Grace's cores launch more slowly than those of x86 hosts. Of NVIDIA's tables, what waits for
  // them on GB200 without state spaces gives 1.5 and Nemotron 3 gives 1.32; runs of Megatron-LM's
  // own layers in its functional tests take 1.2 to 1.4 times as long as beside H100. A linear of
  // PyTorch alone takes 2.5 to 2.8 times as long (TransformerEngine issue 2053).
  double grace_slowness = 1.3;

  // Seconds in which nanotron's Python clips, updates and narrows one parameter. Fitted on its 16
  // rows (docs/benchmark_summary.svg @2411b022; script/holdout).
  double nanotron_update = 0.7e-3;
  // Seconds in which nanotron copies one rank's slice of one parameter, after ZeRO has gathered it.
  // Fitted with `nanotron_update`.
  double nanotron_slice = 30e-6;
};

struct StepConstants {
  // What computation loses while communication runs beside it, as a part of that time: both use
  // multiprocessors and HBM. The mean of Lee et al. 2025 (arXiv 2507.03114) over A100, H100, MI210
  // and MI250, at most 0.4; Galvatron measured 0.126 on A100 (PKU-DAIR/Hetu-Galvatron
  // overlap_coefficient @cea12ff), one GEMM beside an all-gather there lost 0.76 (NCCL issue 1428).
  double overlap_slowdown = 0.19;
  // What is lost with user buffers, as a part of the time that a collective and the product beside
  // it run: both are cut into parts, which are smaller products, and wait for each other. Fitted on
  // NVIDIA's tables (405B and 70B at tp 2 to 8 on H100 and GB200).
  double parts_slowdown = 0.82;
  // What is lost, as `parts_slowdown`, where each part is copied from a peer's memory by no kernel
  // (PyTorch's symmetric memory). Fitted on torchtitan's six pairs of runs with and without it.
  double copied_parts_slowdown = 0.54;
  // Seconds in which tensor-parallel ranks wait for each other at each collective that nothing
  // hides, beyond what the network takes, in Megatron's own layers of 2021 to 2023. Fitted on
  // vTrain's rows with tp 2 to 8 beside tp 1, and on Korthikanti et al. 2022, Table 5.
  double local_layers_wait = 165e-6;
  // GPUs beyond which waiting for the slowest of them counts (Generation::straggling).
  double straggling_from = 256;
};

struct TimeConstants {
  std::array<kernels::Generation, 4> generations = kernels::generations;  // newest first
  kernels::Shared kernels;
  HostConstants host;
  StepConstants step;
};

inline constexpr TimeConstants published_constants{};

/// When the published constants were last fitted.
inline constexpr std::string_view date_of_published_constants = "2026-11-30";

/// The constants that stand for this GPU.
constexpr const TimeConstants& time_constants(const GpuSpec& gpu) {
  return gpu.constants != nullptr ? *gpu.constants : published_constants;
}

/// The constants of this GPU's generation; of the last one where it is not CUDA.
constexpr const kernels::Generation& generation_of(const GpuSpec& gpu) {
  const TimeConstants& constants = time_constants(gpu);
  for (const kernels::Generation& generation : constants.generations) {
    if (gpu.compute_capability >= generation.least_compute_capability) return generation;
  }
  return constants.generations.back();
}

/// The generation whose constants time this GPU, where it is of another; else empty.
inline std::string_view stand_in_generation(const GpuSpec& gpu) {
  const std::string_view used = generation_of(gpu).name;
  return std::string_view(gpu.architecture).starts_with(used) ? std::string_view() : used;
}

}  // namespace zeroplan
