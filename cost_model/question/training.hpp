#pragma once
// How it is trained, apart from where: batch, sequence, number formats, optimizer.

#include <array>
#include <cstdint>

#include "cost_model/question/names.hpp"

namespace zeroplan {

enum class Precision { bf16, fp16, fp32, fp8, nvfp4 };   // of the compute weights and activations
enum class OptimizerKind { adam, sgd, adam8bit, muon };  // sgd: with momentum
enum class AttentionKernel { flash, unfused };           // unfused stores the score matrix

/// How the FLOPs of causal attention are counted, whatever the kernel does. `causal`: the half of
/// the score matrix that matters, as NVIDIA's tables, torchtitan and Llama 3's paper do. `whole`:
/// all of it, as Narayanan et al. 2021 (eq. 3), Korthikanti et al. 2022 (Table 5) and nanotron do.
enum class ScoreCount { causal, whole };

template <>
struct Spellings<Precision> {
  static constexpr std::array<std::string_view, 5> value{"bf16", "fp16", "fp32", "fp8", "nvfp4"};
};
template <>
struct Spellings<OptimizerKind> {
  static constexpr std::array<std::string_view, 4> value{"adam", "sgd", "adam8bit", "muon"};
};
template <>
struct Spellings<AttentionKernel> {
  static constexpr std::array<std::string_view, 2> value{"flash", "unfused"};
};

template <>
struct Spellings<ScoreCount> {
  static constexpr std::array<std::string_view, 2> value{"causal", "whole"};
};

/// Whether products read copies narrower than the 16-bit tensors beside them.
constexpr bool is_quantized(Precision precision) {
  return precision == Precision::fp8 || precision == Precision::nvfp4;
}

struct TrainingSpec {
  std::int64_t sequence_length = 0;  // tokens of one sample
  std::int64_t global_batch = 0;     // samples of one optimizer step, over all GPUs
  Precision precision = Precision::bf16;
  OptimizerKind optimizer = OptimizerKind::adam;
  AttentionKernel attention = AttentionKernel::flash;
  ScoreCount scores = ScoreCount::causal;  // of reported FLOPs, and of MFU by them; of no time
  friend bool operator==(const TrainingSpec&, const TrainingSpec&) = default;
};

}  // namespace zeroplan
