// Plans, changed as JSON: values that are nearly right in the places of others.
#include <nlohmann/json.hpp>
#include <random>

#include "presets/configuration.hpp"
#include "tests/fuzz/target.hpp"

namespace zeroplan::fuzz {
namespace {

using Json = nlohmann::json;

const char* const plan = R"({"schema": "zeroplan.fit/1",
  "model": {"name": "llama3-8b", "parameters": 8030261248}, "runtime": "megatron",
  "cluster": {"gpus": 8, "gpu": "H100-80GB", "gpus_per_node": 8},
  "settings": {"hidden_dropout": "0", "tp_comm_overlap": "true"},
  "versions": {"program": "0.1.0", "presets": "0", "constants": "2026-11-24", "corpus": "0"},
  "layout": {"dp": 2, "tp": 2, "pp": 2, "vpp": 1, "cp": 1, "ep": 1, "etp": 1, "zero": 1,
    "sequence_parallel": true, "micro_batch": 1, "global_batch": 16, "sequence_length": 4096,
    "schedule": "1f1b", "recompute": "none", "precision": "bf16", "optimizer": "adam",
    "attention": "flash", "offload": "none"}})";

// Every value of the document, itself the first.
void collect(Json& value, std::vector<Json*>& all) {
  all.push_back(&value);
  if (!value.is_structured()) return;
  for (Json& part : value) collect(part, all);
}

}  // namespace

// The bytes say which values become what.
void look_at_plan(std::string_view bytes) {
  static const std::vector<Json> odd{nullptr,
                                     true,
                                     -1,
                                     0,
                                     1e308,
                                     4294967296,
                                     0.5,
                                     "",
                                     "\x1b[31m",
                                     "inf",
                                     "-0",
                                     "a=b --tp 2",
                                     Json::array(),
                                     Json::object(),
                                     Json::array({1, 2}),
                                     "auto",
                                     9223372036854775807,
                                     "\xc3\xa9",
                                     "$(x)",
                                     3};
  Json document = Json::parse(plan);
  for (std::size_t i = 0; i + 1 < bytes.size() && i < 12; i += 2) {
    std::vector<Json*> all;
    collect(document, all);
    Json& at = *all[static_cast<unsigned char>(bytes[i]) % all.size()];
    const auto choice = static_cast<unsigned char>(bytes[i + 1]);
    if (choice < 128) {
      at = odd[choice % odd.size()];
    } else if (choice < 160 && at.is_object() && !at.empty()) {
      at.erase(at.begin());
    } else {
      at = Json(*all[choice % all.size()]);
    }
  }
  const ImportedConfiguration meaning = import_plan(document.dump(), "file");
  for (const TypedOption& option : meaning.options) require_printable(option.value);
  require_printable(meaning.model);
  for (const auto& [name, value] : meaning.versions) require_printable(value);
}

std::vector<std::string> plan_seeds() {
  return {"", "\x05\x02", "\x0b\xa0\x10\x07", std::string(12, '\x91')};
}

}  // namespace zeroplan::fuzz
