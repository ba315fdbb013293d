// What does this machine have? Front door: probe_here.
#include "cli/gpu/probe.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/out/standard_output.hpp"
#include "cli/out/written_file.hpp"
#include "cli/probe/probe_preset.hpp"
#include "cost_model/kernel/layer_gemms.hpp"
#include "gpu_probe/cuda/watchdog.hpp"
#include "gpu_probe/probe.hpp"
#include "presets/catalog.hpp"
#include "presets/runtime.hpp"

namespace zeroplan {
namespace {

constexpr Bytes largest_payload = 512_MiB;

// The products of a small and of a large model's layer and head, whole and divided by eight: the
// sizes between which layouts lie.
std::vector<Gemm> planned_gemms() {
  std::vector<Gemm> all;
  for (const char* name : {"llama3-8b", "llama3-70b"}) {
    for (const std::int64_t tp : {1, 8}) {
      Problem p{.model = find_model(name).spec,
                .runtime = load_runtime(Runtime::megatron, {}),
                .training = {.sequence_length = 4096},
                .layout = {.tp = tp}};
      for (const auto& list : {layer_gemms(p, LayerKind::dense), head_gemms(p)}) {
        all.insert(all.end(), list.begin(), list.end());
      }
    }
  }
  return all;
}

std::string devices_text(bool json) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string text;
  for (const Device& d : visible_devices()) {
    text += fmt::format("{}: {}, {:.2f} GiB, {:.2f} GiB free, compute capability {}.{}\n",
                        rows.size(), d.name, gibibytes(d.memory), gibibytes(d.free),
                        d.compute_capability / 10, d.compute_capability % 10);
    rows.push_back({{"name", d.name},
                    {"compute_capability", d.compute_capability},
                    {"memory_bytes", d.memory.count()},
                    {"free_bytes", d.free.count()}});
  }
  return json ? rows.dump(2) + '\n' : text;
}

}  // namespace

void probe_here(const ProbeOutput& output) {
  if (output.devices) {
    const Watchdog watchdog(std::chrono::seconds(output.patience), "; --timeout gives it longer");
    write_answer(devices_text(output.json));
    return;
  }
  ProbePlan plan{.gemms = planned_gemms(),
                 .largest_payload = largest_payload,
                 .patience = std::chrono::seconds(output.patience)};
  if (!output.quiet) {
    plan.started = [](std::string_view stage) { fmt::print(stderr, "measuring {} ...\n", stage); };
  }
  const ProbeFacts facts = probe_machine(plan);
  const std::string preset = probe_preset(facts);
  if (!output.file.empty()) write_file(output.file, preset);
  write_answer(output.json ? preset : probe_text(facts));
}

}  // namespace zeroplan
