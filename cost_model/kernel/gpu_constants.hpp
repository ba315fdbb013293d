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

/// GEMM: start + max(2 m n (k + k0) / (efficiency x peak), bytes / (gemm_bandwidth x HBM)).
struct GemmRate {
  double efficiency;
  double k0;     // what filling and draining the pipeline costs, as columns of k
  double start;  // seconds; in training partly behind the kernel before
};

struct GemmSpeed {
  GemmRate burst;      // a kernel of less than half a millisecond alone on a cool GPU
  GemmRate sustained;  // in training, where power limits the clock
  // Grouped GEMM: the part of the shorter of arithmetic and reading that does not hide behind the
  // longer. Chosen on all of SimuMax's rows, to be right on average.
  double grouped_exposed;
  // What products of 8 and 4 bits reach of the efficiency of those of 16 in training: power limits
  // the clock, and they take less of it for as many products.
  double eight_bit = 1;
  double four_bit = 1;
};

/// How many times as fast attention is whose products are of 8 bits: exponentials and scales stay.
/// `wide`: of heads wider than 128 in queries and keys alone, which have kernels of their own.
struct EightBitAttention {
  double forward = 1.5;
  double backward = 0.8;
  double wide_forward = 1.5;
  double wide_backward = 0.8;
};

/// Flash attention: start + max(F (1 + s0 / keys) / (efficiency x peak), bytes / (gemm_bandwidth x
/// HBM)), with the efficiency of heads narrower than 128 times (width / 128)^narrow.
struct AttentionSpeed {
  double forward;
  double backward;
  double forward_s0;  // keys; mostly causal tiles on the diagonal, of which half is wasted
  double narrow;
  double start;  // seconds
  // What is left of `forward` in training, where power limits the clock.
  double forward_sustained = 1;
  // wide_backward of the kernels of cuDNN 9.18 and later; 0: Shared::wide_backward.
  double recent_wide_backward = 0;
  // Attention in 8 bits with one scale a tensor, and with one for 32 elements.
  EightBitAttention one_scale{};
  EightBitAttention block_scales{};
};

/// Parts of the nominal HBM rate.
struct MemorySpeed {
  double streaming;  // read and write once: norms, residuals, activations, the loss
  // Rows gathered by index: MoE dispatch, fused. Bytes as layer_traffic.cpp counts them.
  double permute;
  // Triton's kernels of a state space, whose bytes state_space.cpp counts; products of chunks in
  // fp32 cost as much. Fitted on NVIDIA's rows of Nemotron 3 (script/holdout); no run of Ampere's
  // is known: Hopper's.
  double scan;
};

/// What generations share.
struct Shared {
  // The part of the nominal HBM rate that a kernel which is bound by it gets beside matrix units at
  // work. Set, not fitted: training GEMMs are seldom bound by it.
  double gemm_bandwidth = 0.85;
  // A GEMM that adds to an fp32 gradient reaches this much of the others' rate. Fitted: SimuMax's
  // A100-PCIe gives 0.954 and B200 0.974; one that adds to a 16-bit gradient is as fast as others.
  double weight_gradient_rate = 0.96;
  // A GEMM whose rows do not begin at 16 bytes takes this much longer: what the head costs at tp 1
  // in vTrain's runs, where 50,257 words are not padded, beside tp 2 to 8, where they are (fitted).
  double unaligned_slowness = 3.3;
  // Batched products over heads whose width is no multiple of the tile take (padded width / width)
  // to this power longer: the runs with heads of 96 and 160 of Narayanan et al. 2021, Korthikanti
  // et al. 2022 and vTrain, beside those with 64 and 128 (fitted).
  std::int64_t head_tile = 64;
  double head_tile_waste = 1.75;

  // What is left of forward_s0 without a diagonal. The rows of the FlashAttention-3 paper.
  double whole_matrix_s0 = 0.25;
  // s0 of backward. Fitted on the H100 rows of FA3 and cuDNN in the FlashAttention-3 paper.
  double backward_s0 = 370;
  // Backward, heads wider than 128 reach (128 / width)^wide_backward of the rate; forward they are
  // as fast. Fitted on SimuMax's eight rows of 192 each on A100-PCIe and B200: 0.79 of it on both.
  double wide_backward = 0.57;
  // FlashAttention of the first generation takes this much longer than the second: llm-foundry's
  // rows of 32,768 and 65,536 tokens on A100 (Dao 2023, section 4.1, gives 1.7 to 3).
  double flash1_slowness = 1.65;
  // Tiles on the edges of a sliding window are computed whole: so many times forward_s0 or
  // backward_s0. Set; of a window of 128 on GB200 and GB300 (NVIDIA/cudnn-frontend
  // benchmark/sdpa_benchmark_training/results/gpt_oss @3929da2) kernels come out within a
  // factor of 1.45.
  double window_edges = 1;

  // Attention in 8 bits forward on compute capability 10.3 beside 10.0, clocks apart: GB300's
  // kernels beside GB200's in cudnn-frontend's tables (1.14 to 1.24). Exponentials are what is left
  // there when products take half the time.
  std::int64_t fast_exponentials = 103;
  double fast_exponentials_forward = 1.17;

  // Seconds a memory-bound kernel takes to start: ai-dynamo/aiconfigurator systems/*.yaml @095f58a5
  // (mem_empirical_constant_latency). SimuMax's 30 and 40 us count the host, which is apart here.
  double memory_start = 3 * us;
  // Bytes/s of rows that are moved with atomic additions, which HBM does not limit: 301 GB/s on
  // SimuMax's A100-PCIe (configs/system/a100_pcie.json @4dcaae5, permute); no newer GPU has a row.
  double scatter_rate = 301e9;

  // How often code moves what fused kernels move once. RMSNorm spelt out in PyTorch widens,
  // squares, averages, scales, narrows and weighs: 34 bytes an element instead of 4; rotation by
  // complex numbers widens, multiplies and narrows: 20 instead of 4. Other operators move the same.
  double composite_norm_passes = 8.5;
  double complex_rotation_passes = 5;
  // Megatron-LM's own layers, with their fused softmax, GELU and dropout. Fitted with `sustained`
  // of Ampere (script/holdout).
  double local_passes = 1.2;
  // Seconds of one pass of one of Megatron-LM's own layers that no other term has: gaps between its
  // many kernels, and kernels too small to be listed. Fitted with `local_passes`.
  double local_gap = 0.5e-3;
};

struct Generation {
  std::string_view name;
  std::int64_t least_compute_capability;
  GemmSpeed gemm;
  AttentionSpeed attention;  // by the newest kernel: FlashAttention-2, -3, cuDNN 9
  AttentionSpeed flash2;     // by FlashAttention-2
  MemorySpeed memory;
  // What waiting for the slowest of many GPUs adds for each doubling of their number beyond 256.
  // Fitted on the four rows of Narayanan et al. 2021, Table 1, with more than 512 GPUs, beside
  // those with fewer.
  double straggling = 0.017;
};

// Hopper's: ten series of NVIDIA's DGX Cloud (nvidia_dgxc.jsonl), five models in two formats, each
// trained alike on 256 to 2,304 GPUs, beside what their messages take.
inline constexpr double hopper_straggling = 0.007;

// Ampere. GEMM burst: fitted on A100-SXM; sustained: step times of Narayanan et al. 2021, Table 1,
// Korthikanti et al. 2022, Table 5, and vTrain (script/holdout; single kernels of the burst rows
// give 0.81 and 100). SimuMax's A100-PCIe at 300 W has 0.76. Attention: forward fitted on A100-SXM,
// backward on A100-PCIe; narrow heads were measured on H100 only, with FlashAttention-2. Memory:
// the rate of streaming is fitted on llm-foundry's A100 rows; SimuMax's a100_pcie.json @4dcaae5 has
// 1456 and 301 of 1935 GB/s.
inline constexpr GemmSpeed ampere_gemm{
    .burst = {.efficiency = 0.81, .k0 = 100, .start = 14 * us},
    .sustained = {.efficiency = 0.86, .k0 = 260, .start = 5 * us},
    .grouped_exposed = 0.5};
inline constexpr AttentionSpeed ampere_attention{
    .forward = 0.57, .backward = 0.54, .forward_s0 = 100, .narrow = 0.1, .start = 55 * us};
inline constexpr MemorySpeed ampere_memory{.streaming = 0.87, .permute = 0.16, .scan = 0.31};

// Hopper. GEMM burst: fitted on H100 and H200; kernels above half a millisecond fall to 0.77
// there, training to 0.68 (step times of llm-foundry and torchtitan). Attention: forward fitted on
// H100, H200 and the FlashAttention-3 paper's FA3 and cuDNN, backward and flash2 on that paper; in
// 8 bits the means of 4,096 to 16,384 tokens on H200 with cuDNN 9.19 (NVIDIA/cudnn-frontend
// benchmark/sdpa_benchmark_training/results @3929da2), the kernels that Transformer Engine trains
// with (pytorch/attention/dot_product_attention/utils.py get_attention_backend).
// Memory: aiconfigurator (2680 of 3350 GB/s); permute and grouped GEMM have no rows: Blackwell's.
// Products of 8 bits: fitted on the step times of NVIDIA's tables, torchtitan and llm-foundry, each
// with the casts of its own scaling (KernelHabits::casts) and the same rate.
inline constexpr GemmSpeed hopper_gemm{
    .burst = {.efficiency = 0.865, .k0 = 180, .start = 3.2 * us},
    .sustained = {.efficiency = 0.68, .k0 = 180, .start = 3.2 * us},
    .grouped_exposed = 0.85,
    .eight_bit = 0.92};
inline constexpr AttentionSpeed hopper_attention{
    .forward = 0.66, .backward = 0.58, .forward_s0 = 670, .narrow = 0.4, .start = 21 * us};
inline constexpr AttentionSpeed hopper_flash2{
    .forward = 0.35, .backward = 0.34, .forward_s0 = 235, .narrow = 0.1, .start = 21 * us};
inline constexpr MemorySpeed hopper_memory{.streaming = 0.8, .permute = 0.25, .scan = 0.31};

// Blackwell. GEMM burst: fitted on B200 and GB200; sustained: its step times (script/holdout;
// SimuMax's tables of single kernels on B200 have 0.50). Backward attention: fitted on those
// tables, forward on B200; there, kernels of tens of milliseconds (131,072 tokens) reach 0.83 of
// those of three (32,768). Memory: SimuMax b200_bf16_ceperm.json @4dcaae5: 5328 of 8000 GB/s, and
// 4046 for permuting there and back, which its test_ce_permute_efficiency.py counts as twice the
// bytes that these two kernels move. Attention in 8 bits, of Llama's heads and DeepSeek's at 4,096
// and 8,192 tokens with cuDNN 9.22 (cudnn-frontend, as Hopper's): forward GB200's kernels beside
// `forward`, which older kernels set, backward those of GB200 and GB300 beside the same tables' in
// 16 bits. Recent wide heads backward: in these DeepSeek's reach 0.91 of Llama's. Products of 8 and
// 4 bits: fitted on NVIDIA's tables (nvidia_tables.jsonl) and its DGX Cloud's runs on GB200
// (nvidia_dgxc.jsonl) with the clocks that the boards' power leaves (`sustained_clock` and
// `sustained_clock_16_bits` in presets/gpus) and user buffers.
inline constexpr GemmSpeed blackwell_gemm{
    .burst = {.efficiency = 0.69, .k0 = 15, .start = 4 * us},
    .sustained = {.efficiency = 0.46, .k0 = 15, .start = 4 * us},
    .grouped_exposed = 0.85,
    .eight_bit = 1.18,
    .four_bit = 0.98};
inline constexpr AttentionSpeed blackwell_attention{
    .forward = 0.615,
    .backward = 0.415,
    .forward_s0 = 1400,
    .narrow = 0.77,
    .start = 22 * us,
    .forward_sustained = 0.83,
    .recent_wide_backward = 0.23,
    .one_scale = {.forward = 1.5, .backward = 1.12, .wide_forward = 1.75, .wide_backward = 1.69},
    .block_scales = {
        .forward = 1.4, .backward = 0.95, .wide_forward = 1.61, .wide_backward = 1.31}};
inline constexpr MemorySpeed blackwell_memory{.streaming = 0.67, .permute = 0.25, .scan = 0.16};

// AMD. The best GEMM anyone found reaches 0.51 of peak on MI300X, 0.60 on MI325X and 0.68 on
// MI355X (stas00/ml-engineering compute/accelerator): their mean. All else: Hopper's, unmeasured.
inline constexpr GemmSpeed cdna_gemm{.burst = {.efficiency = 0.6, .k0 = 180, .start = 3.2 * us},
                                     .sustained = {.efficiency = 0.6, .k0 = 180, .start = 3.2 * us},
                                     .grouped_exposed = 0.85};

// Newest first. Compute capabilities 8.6 and 8.9 (Ada) have Ampere's values and 12.0 (GeForce
// Blackwell) has Blackwell's; Volta and Turing have Ampere's too: no row tells.
inline constexpr std::array<Generation, 4> generations{{
    {"Blackwell", 100, blackwell_gemm, blackwell_attention, blackwell_attention, blackwell_memory},
    {"Hopper", 90, hopper_gemm, hopper_attention, hopper_flash2, hopper_memory, hopper_straggling},
    {"Ampere", 70, ampere_gemm, ampere_attention, ampere_attention, ampere_memory},
    {"CDNA", 0, cdna_gemm, hopper_attention, hopper_flash2, hopper_memory},
}};

}  // namespace zeroplan::kernels
