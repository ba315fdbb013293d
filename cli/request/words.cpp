// What else is it called? Front doors: usual_word, option_meant, read_gpu_text.
#include "cli/request/words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

struct Word {
  std::string_view flag;
  std::string_view typed;
  std::string_view usual;
};

// Megatron-LM, NeMo, torchtitan, transformers' TrainingArguments, PyTorch and DeepSpeed.
constexpr Word known_words[] = {
    {"--optimizer", "adamw", "adam"},
    {"--optimizer", "adamw_torch", "adam"},
    {"--optimizer", "adamw_torch_fused", "adam"},
    {"--optimizer", "fusedadam", "adam"},
    {"--optimizer", "adamw8bit", "adam8bit"},
    {"--optimizer", "adamw_8bit", "adam8bit"},
    {"--optimizer", "adamw_bnb_8bit", "adam8bit"},
    {"--optimizer", "adam-8bit", "adam8bit"},
    {"--precision", "bfloat16", "bf16"},
    {"--precision", "bf16-mixed", "bf16"},
    {"--precision", "float16", "fp16"},
    {"--precision", "half", "fp16"},
    {"--precision", "fp16-mixed", "fp16"},
    {"--precision", "float32", "fp32"},
    {"--precision", "float8", "fp8"},
    {"--runtime", "torchtitan", "fsdp2"},
    {"--runtime", "titan", "fsdp2"},
    {"--runtime", "fsdp", "fsdp2"},
    {"--runtime", "megatron-core", "megatron"},
    {"--runtime", "megatron-lm", "megatron"},
    {"--runtime", "megatron-bridge", "megatron"},
    {"--runtime", "mcore", "megatron"},
    {"--runtime", "nemo", "megatron"},
    {"--attention", "flash2", "flash"},
    {"--attention", "flash_attention_2", "flash"},
    {"--attention", "flash-attention", "flash"},
    {"--attention", "sdpa", "flash"},
    {"--attention", "eager", "unfused"},
    {"--recompute", "off", "none"},
    {"--schedule", "afab", "gpipe"},
    {"--schedule", "interleaved1f1b", "interleaved"},
    {"--schedule", "interleaved-1f1b", "interleaved"},
    {"--schedule", "zbv", "zb-v"},
    {"--schedule", "zbh1", "zb-h1"},
    {"--sequence-parallel", "true", "on"},
    {"--sequence-parallel", "false", "off"},
    {"--offload", "params", "parameters"},
};

// Words that name no runtime of their own.
constexpr std::string_view launchers[] = {"accelerate", "transformers", "trainer", "huggingface",
                                          "hf",         "pytorch",      "torch",   "trl",
                                          "axolotl",    "lightning"};

struct Meant {
  std::string_view typed;  // without dashes before it
  std::string_view answer;
};

constexpr Meant options[] = {
    {"tensor-parallel", "it is --tp here"},
    {"tensor-parallel-size", "it is --tp here"},
    {"tensor-model-parallel-size", "it is --tp here"},
    {"tensor-parallel-degree", "it is --tp here"},
    {"pipeline-parallel", "it is --pp here"},
    {"pipeline-parallel-size", "it is --pp here"},
    {"pipeline-model-parallel-size", "it is --pp here"},
    {"pipeline-parallel-degree", "it is --pp here"},
    {"virtual-pipeline", "it is --vpp here"},
    {"virtual-pipeline-model-parallel-size", "it is --vpp here"},
    {"context-parallel", "it is --cp here"},
    {"context-parallel-size", "it is --cp here"},
    {"context-parallel-degree", "it is --cp here"},
    {"expert-parallel", "it is --ep here"},
    {"expert-parallel-size", "it is --ep here"},
    {"expert-model-parallel-size", "it is --ep here"},
    {"expert-tensor-parallel-size", "it is --etp here"},
    {"dp", "dp follows from --gpus and the other degrees"},
    {"data-parallel", "dp follows from --gpus and the other degrees"},
    {"data-parallel-size", "dp follows from --gpus and the other degrees"},
    {"seq-len", "it is --seq here"},
    {"seq-length", "it is --seq here"},
    {"sequence-length", "it is --seq here"},
    {"sequence-len", "it is --seq here"},
    {"max-seq-len", "it is --seq here"},
    {"max-seq-length", "it is --seq here"},
    {"max-length", "it is --seq here"},
    {"context", "it is --seq here"},
    {"context-length", "it is --seq here"},
    {"block-size", "it is --seq here"},
    {"batch", "it is --micro-batch of a pass and --global-batch of a step here"},
    {"batch-size", "it is --micro-batch of a pass and --global-batch of a step here"},
    {"train-batch-size", "it is --global-batch here"},
    {"global-batch-size", "it is --global-batch here"},
    {"gbs", "it is --global-batch here"},
    {"micro-batch-size", "it is --micro-batch here"},
    {"mbs", "it is --micro-batch here"},
    {"per-device-train-batch-size", "it is --micro-batch here"},
    {"train-micro-batch-size-per-gpu", "it is --micro-batch here"},
    {"gradient-accumulation-steps", "it is --gradient-accumulation here"},
    {"grad-accum", "it is --gradient-accumulation here"},
    {"accumulation-steps", "it is --gradient-accumulation here"},
    {"world-size", "it is --gpus COUNTxGPU here"},
    {"num-gpus", "it is --gpus COUNTxGPU here"},
    {"ngpus", "it is --gpus COUNTxGPU here"},
    {"gpu", "it is --gpus COUNTxGPU here"},
    {"gpu-type", "it is --gpus COUNTxGPU here"},
    {"devices", "it is --gpus COUNTxGPU here"},
    {"num-nodes", "it is --nodes here"},
    {"nnodes", "it is --nodes here"},
    {"stage", "it is --zero here"},
    {"zero-stage", "it is --zero here"},
    {"gradient-checkpointing", "it is --recompute here"},
    {"activation-checkpointing", "it is --recompute here"},
    {"checkpoint-activations", "it is --recompute here"},
    {"recompute-granularity", "it is --recompute here"},
    {"dtype", "it is --precision here"},
    {"torch-dtype", "it is --precision here"},
    {"mixed-precision", "it is --precision here"},
    {"bf16", "it is --precision bf16 here"},
    {"fp16", "it is --precision fp16 here"},
    {"fp8", "it is --precision fp8 here"},
    {"optim", "it is --optimizer here"},
    {"cpu-offload", "it is --offload here"},
    {"framework", "it is --runtime here"},
    {"engine", "it is --runtime here"},
    {"fsdp", "it is --runtime fsdp2 here"},
    {"deepspeed", "it is --runtime deepspeed here, or --config FILE for its file"},
    {"model", "MODEL is written without an option"},
    {"sp", "it is --sequence-parallel here"},
    {"virtual-stages", "it is --vpp here"},
    {"output", "--json > FILE writes the answer to a file"},
    {"lora", "adapters are not modelled: all weights are trained"},
    {"qlora", "adapters are not modelled: all weights are trained"},
    {"peft", "adapters are not modelled: all weights are trained"},
    {"adapter", "adapters are not modelled: all weights are trained"},
    {"lora-rank", "adapters are not modelled: all weights are trained"},
    {"freeze", "frozen weights are not modelled: all weights are trained"},
    {"load-in-4bit", "quantized weights are not modelled: see --precision"},
    {"load-in-8bit", "quantized weights are not modelled: see --precision"},
    {"quantization", "quantized weights are not modelled: see --precision"},
    {"inference", "serving is not modelled: training is"},
};

bool is_count(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::string usual_word(std::string_view flag, std::string_view typed) {
  const std::string word = lower_case(typed);
  for (const Word& known : known_words) {
    if (known.flag == flag && known.typed == word) return std::string(known.usual);
  }
  const bool launches =
      std::find(std::begin(launchers), std::end(launchers), word) != std::end(launchers);
  if (flag == "--runtime" && launches) {
    throw InputError(fmt::format(
        "--runtime {}: it launches several; say ddp, fsdp2 or deepspeed, or give its file with "
        "--config",
        in_quotes(typed)));
  }
  return word;
}

std::string option_meant(std::string_view typed) {
  typed = typed.substr(0, typed.find('='));
  std::string name = plain_name(typed);
  name.erase(0, name.find_first_not_of('-'));
  for (const Meant& known : options) {
    if (known.typed == name) return fmt::format("; {}", known.answer);
  }
  return "";
}

GpuText read_gpu_text(std::string_view typed) {
  std::string text(typed);
  std::erase_if(text, [](char c) { return c == ' ' || c == '\t'; });
  for (const std::string_view times : {"\u00d7", "*"}) {
    const std::size_t at = text.find(times);
    if (at != std::string::npos) text.replace(at, times.size(), "x");
  }
  if (is_count(text)) return {text, ""};
  const std::size_t first = text.find_first_of("xX");
  constexpr std::string_view starts_number = "0123456789-+.";
  if (first != std::string::npos && starts_number.find(text.front()) != std::string_view::npos) {
    return {text.substr(0, first), text.substr(first + 1)};
  }
  // H100x8; but an x may be of the name: rtx4090.
  constexpr std::size_t most_digits = 3;
  const std::size_t last = text.rfind('x');
  if (last == std::string::npos) return {"", text};
  const std::string count = text.substr(last + 1);
  if (last > 0 && is_count(count) && count.size() <= most_digits) {
    return {count, text.substr(0, last)};
  }
  return {"", text == "x" ? "" : text};
}

}  // namespace zeroplan
