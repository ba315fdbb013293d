// Whole questions with a layout: what every answer must hold, and the same again from its document.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/compare/side.hpp"
#include "cli/out/answer.hpp"
#include "cli/out/report.hpp"
#include "presets/configuration.hpp"
#include "presets/input_error.hpp"
#include "tests/fuzz/target.hpp"

namespace zeroplan::fuzz {
namespace {

using Json = nlohmann::json;

struct Field {
  std::optional<std::string> LayoutArguments::*text;
  std::string_view name;            // in the document
  std::vector<const char*> values;  // nullptr: left open
};

// A byte chooses of each.
const std::vector<Field>& fields() {
  using A = LayoutArguments;
  static const std::vector<Field> all{
      {&A::runtime, "runtime", {"megatron", "fsdp2", "deepspeed", "ddp", "nanotron", "zero-paper"}},
      {&A::tp, "tp", {"1", "2", "4", "8", "3"}},
      {&A::pp, "pp", {"1", "2", "4", "8", "3"}},
      {&A::micro_batch, "micro_batch", {"1", "2", "4", "3"}},
      {&A::zero, "zero", {"0", "1", "2", "3"}},
      {&A::recompute, "recompute", {"none", "selective", "full"}},
      {&A::cp, "cp", {"1", nullptr, "2", "1"}},
      {&A::ep, "ep", {"1", "2", nullptr, "4"}},
      {&A::vpp, "vpp", {nullptr, "1", "2"}},
      {&A::seq, "sequence_length", {"2048", nullptr, "1000", "8192", "512"}},
      {&A::global_batch, "global_batch", {nullptr, "64", "96", "1000"}},
      {&A::precision, "precision", {nullptr, "bf16", "fp16", "fp32", "fp8"}},
      {&A::optimizer, "optimizer", {nullptr, "adam", "sgd", "adam8bit", "muon"}},
      {&A::schedule, "schedule", {nullptr, "1f1b", "gpipe", "zb-h1", "zb-v", "interleaved"}},
      {&A::sequence_parallel, "sequence_parallel", {nullptr, "on", "off"}},
      {&A::attention, "attention", {nullptr, "flash", "unfused"}},
      {&A::offload, "offload", {nullptr, nullptr, "none", "optimizer", "parameters"}},
  };
  return all;
}

LayoutArguments question_of(std::string_view bytes) {
  static constexpr const char* models[] = {"llama3-8b", "mixtral-8x7b",     "gpt2-xl",
                                           "gemma2-2b", "deepseek-v2-lite", "qwen2.5-7b",
                                           "bloom-7b1"};
  static constexpr const char* gpus[] = {"8xH100-80GB",  "16xA100-40GB", "64xA100-80GB", "4xB200",
                                         "24xV100-32GB", "2xRTX4090",    "8xMI300X"};
  std::size_t at = 0;
  const auto next = [&] {
    return at < bytes.size() ? static_cast<unsigned char>(bytes[at++]) : std::size_t{0};
  };
  LayoutArguments asked;
  asked.model = models[next() % std::size(models)];
  asked.gpus = gpus[next() % std::size(gpus)];
  for (const Field& field : fields()) {
    const char* const value = field.values[next() % field.values.size()];
    if (value != nullptr) asked.*field.text = value;
  }
  return asked;
}

std::string said(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void look_at_document(const Json& document, const LayoutArguments& asked) {
  const Json& layout = document.at("layout");
  for (const Field& field : fields()) {
    if (!(asked.*field.text)) continue;
    const Json& answered = layout.contains(field.name) ? layout.at(std::string(field.name))
                                                       : document.at(std::string(field.name));
    require(said(answered) == *(asked.*field.text), "what was asked is what is answered");
  }
  const auto number = [&](const char* name) { return layout.at(name).get<std::int64_t>(); };
  require(number("dp") * number("tp") * number("pp") * number("cp") ==
              document.at("cluster").at("gpus").get<std::int64_t>(),
          "degrees make up the GPUs");
  require(number("dp") * number("micro_batch") * number("gradient_accumulation") ==
              number("global_batch"),
          "micro-batches make up the global batch");
  std::int64_t most = 0;
  for (const Json& stage : document.at("stages")) {
    std::int64_t sum = 0;
    for (const Json& row : stage.at("categories")) {
      require(row.get<std::int64_t>() >= 0, "no row is negative");
      sum += row.get<std::int64_t>();
    }
    require(sum == stage.at("device_bytes").get<std::int64_t>(), "rows add up");
    most = std::max(most, sum);
  }
  const Json& peak = document.at("peak");
  require(peak.at("device_bytes").get<std::int64_t>() == most, "the worst stage is the worst");
  const auto capacity = document.at("capacity_bytes").get<std::int64_t>();
  const bool low = peak.at("device_bytes_low").get<std::int64_t>() <= capacity;
  const bool high = peak.at("device_bytes_high").get<std::int64_t>() <= capacity;
  require(said(document.at("verdict")) == (high  ? "fits"
                                           : low ? "tight"
                                                 : "does_not_fit"),
          "the verdict is where the band lies");
}

}  // namespace

// Bytes beyond the fields are left unread.
void look_at_answer(std::string_view bytes) {
  const LayoutArguments asked = question_of(bytes);
  const std::string text = fit_json(answer_of(asked));
  const Json document = Json::parse(text);
  look_at_document(document, asked);
  LayoutArguments again;
  const ImportedConfiguration plan = import_plan(text, "plan");
  again.model = plan.model;
  again.gpus = asked.gpus;
  for (const TypedOption& option : plan.options) {
    if (option.flag != "--gpus" && option.flag != "--cluster") give(again, option);
  }
  const Json replayed = Json::parse(fit_json(answer_of(again)));
  for (const char* part : {"layout", "verdict", "peak", "stages", "step", "communication"}) {
    require(replayed.at(part) == document.at(part), "a plan's answer is that of its replay");
  }
}

std::vector<std::string> answer_seeds() {
  std::vector<std::string> all;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::string bytes;
    for (unsigned i = 0, x = seed * 2'654'435'761U; i < 2 + fields().size(); ++i) {
      x = x * 1'664'525U + 1'013'904'223U;
      bytes += static_cast<char>(x >> 24U);
    }
    all.push_back(bytes);
  }
  return all;
}

}  // namespace zeroplan::fuzz
