#pragma once
// Every efficiency and latency of a GPU's kernels that this folder uses, with where it comes from.
//
// "Fitted" values minimise the mean |log error| on the lines of tests/reference/efficiency.jsonl
// with an even number (counted from 0), were then rounded, and are judged on all lines by
// tests/cost_model/time/measured_*_test.cpp. "Step times" are fits of whole training steps, which
// these rows cannot show: the published runs in tests/reference/measured.jsonl and the tables of
// Narayanan et al. 2021 and Korthikanti et al. 2022; the fits themselves are not repeated here. A
// GPU without rows of its own has the values of the nearest generation, which the comment at its
// entry says.

#include <array>
#include <cstdint>
#include <string_view>

namespace zeroplan::kernels {

constexpr double us = 1e-6;

/// Of the nominal HBM rate, what a kernel that is bound by it gets beside matrix units at work.
/// Set, not fitted: training GEMMs are seldom bound by it.
inline constexpr double gemm_bandwidth = 0.85;

/// A GEMM that adds to an fp32 gradient reaches this much of the others' rate. Fitted: SimuMax's
/// A100-PCIe gives 0.954 and B200 0.974.
inline constexpr double weight_gradient_rate = 0.96;

/// GEMM: start + max(2 m n (k + k0) / (efficiency x peak), bytes / (gemm_bandwidth x HBM)).
struct GemmSpeed {
  double burst;      // a kernel of less than half a millisecond alone on a cool GPU
  double sustained;  // in training, where power limits the clock
  double k0;         // what filling and draining the pipeline costs, as columns of k
  double start;      // seconds
  // Grouped GEMM: the part of the shorter of arithmetic and reading that does not hide behind the
  // longer. Chosen on all of SimuMax's rows, to be right on average.
  double grouped_exposed;
};

/// Flash attention: start + max(F (1 + s0 / keys) / (efficiency x peak), bytes / (gemm_bandwidth x
/// HBM)), with the efficiency of heads narrower than 128 times (width / 128)^narrow.
struct AttentionSpeed {
  double forward;
  double backward;
  double forward_s0;  // keys; mostly causal tiles on the diagonal, of which half is wasted
  double narrow;
  double start;  // seconds
};

/// What is left of forward_s0 without a diagonal. The rows of the FlashAttention-3 paper.
inline constexpr double whole_matrix_s0 = 0.25;

/// s0 of backward. Fitted on the H100 rows of FA3 and cuDNN in the FlashAttention-3 paper.
inline constexpr double backward_s0 = 370;

/// Parts of the nominal HBM rate.
struct MemorySpeed {
  double streaming;  // read and write once: norms, residuals, activations, the loss
  double permute;    // rows gathered by index: MoE dispatch
};

struct Generation {
  std::string_view name;
  std::int64_t least_compute_capability;
  GemmSpeed gemm;
  AttentionSpeed attention;  // by the newest kernel: FlashAttention-2, -3, cuDNN 9
  AttentionSpeed flash2;     // by FlashAttention-2
  MemorySpeed memory;
};

/// Seconds a memory-bound kernel takes to start: ai-dynamo/aiconfigurator systems/*.yaml @095f58a5
/// (mem_empirical_constant_latency). SimuMax's 30 and 40 us count the host, which is apart here.
inline constexpr double memory_start = 3 * us;

// Ampere. GEMM: fitted on A100-SXM; step times give 0.82, SimuMax's A100-PCIe at 300 W 0.76.
// Attention: forward fitted on A100-SXM, backward on A100-PCIe; narrow heads were measured on H100
// only, with FlashAttention-2. Memory: SimuMax a100_pcie.json @4dcaae5: 1456 and 301 of 1935 GB/s.
inline constexpr GemmSpeed ampere_gemm{
    .burst = 0.81, .sustained = 0.81, .k0 = 100, .start = 14 * us, .grouped_exposed = 0.5};
inline constexpr AttentionSpeed ampere_attention{
    .forward = 0.57, .backward = 0.5, .forward_s0 = 100, .narrow = 0.1, .start = 55 * us};
inline constexpr MemorySpeed ampere_memory{.streaming = 0.75, .permute = 0.16};

// Hopper. GEMM burst: fitted on H100 and H200; kernels above half a millisecond fall to 0.77
// there, training to 0.72 (step times). Attention: forward fitted on H100, H200 and the
// FlashAttention-3 paper's FA3 and cuDNN, backward and flash2 on that paper. Memory: aiconfigurator
// (2680 of 3350 GB/s); permute and grouped GEMM have no rows: Blackwell's.
inline constexpr GemmSpeed hopper_gemm{
    .burst = 0.865, .sustained = 0.72, .k0 = 180, .start = 3.2 * us, .grouped_exposed = 0.85};
inline constexpr AttentionSpeed hopper_attention{
    .forward = 0.66, .backward = 0.58, .forward_s0 = 670, .narrow = 0.4, .start = 21 * us};
inline constexpr AttentionSpeed hopper_flash2{
    .forward = 0.35, .backward = 0.34, .forward_s0 = 235, .narrow = 0.1, .start = 21 * us};
inline constexpr MemorySpeed hopper_memory{.streaming = 0.8, .permute = 0.5};

// Blackwell. GEMM burst: fitted on B200 and GB200; sustained: between SimuMax's tables of single
// kernels on B200 (0.50) and its step times (0.445). Backward attention: fitted on those
// tables, forward on B200. Memory: SimuMax b200_bf16_ceperm.json @4dcaae5: 5328 and 4046 of
// 8000 GB/s.
inline constexpr GemmSpeed blackwell_gemm{
    .burst = 0.69, .sustained = 0.47, .k0 = 15, .start = 4 * us, .grouped_exposed = 0.85};
inline constexpr AttentionSpeed blackwell_attention{
    .forward = 0.615, .backward = 0.415, .forward_s0 = 1400, .narrow = 0.77, .start = 22 * us};
inline constexpr MemorySpeed blackwell_memory{.streaming = 0.67, .permute = 0.5};

// AMD. The best GEMM anyone found reaches 0.51 of peak on MI300X, 0.60 on MI325X and 0.68 on
// MI355X (stas00/ml-engineering compute/accelerator): their mean. All else: Hopper's, unmeasured.
inline constexpr GemmSpeed cdna_gemm{
    .burst = 0.6, .sustained = 0.6, .k0 = 180, .start = 3.2 * us, .grouped_exposed = 0.85};

// Newest first. Compute capabilities 8.6 and 8.9 (Ada) have Ampere's values and 12.0 (GeForce
// Blackwell) has Blackwell's; Volta and Turing have Ampere's too: no row tells.
inline constexpr std::array<Generation, 4> generations{{
    {"Blackwell", 100, blackwell_gemm, blackwell_attention, blackwell_attention, blackwell_memory},
    {"Hopper", 90, hopper_gemm, hopper_attention, hopper_flash2, hopper_memory},
    {"Ampere", 70, ampere_gemm, ampere_attention, ampere_attention, ampere_memory},
    {"CDNA", 0, cdna_gemm, hopper_attention, hopper_flash2, hopper_memory},
}};

/// The generation whose constants stand for a GPU of this compute capability; 0: not CUDA.
constexpr const Generation& generation_of(std::int64_t compute_capability) {
  for (const Generation& generation : generations) {
    if (compute_capability >= generation.least_compute_capability) return generation;
  }
  return generations.back();
}

}  // namespace zeroplan::kernels
