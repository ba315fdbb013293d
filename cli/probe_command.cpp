// zeroplan probe: which GPUs are here? Front door: run_probe.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "gpu_probe/devices.hpp"

namespace zeroplan {

ExitCode run_probe(const OutputOptions& output) {
  const std::vector<Device> devices = visible_devices();
  if (output.form() == Output::json) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Device& d : devices) {
      rows.push_back({{"name", d.name},
                      {"compute_capability", d.compute_capability},
                      {"memory_bytes", d.memory.count()},
                      {"free_bytes", d.free.count()}});
    }
    fmt::print("{}\n", rows.dump(2));
    return ExitCode::yes;
  }
  if (output.form() == Output::csv) fmt::print("device,name,compute_capability,memory,free\n");
  int index = 0;
  for (const Device& d : devices) {
    if (output.form() == Output::csv) {
      fmt::print("{},\"{}\",{},{},{}\n", index, d.name, d.compute_capability, d.memory.count(),
                 d.free.count());
    } else {
      fmt::print("{}: {}, {:.2f} GiB, {:.2f} GiB free, compute capability {}.{}\n", index, d.name,
                 gibibytes(d.memory), gibibytes(d.free), d.compute_capability / 10,
                 d.compute_capability % 10);
    }
    ++index;
  }
  return ExitCode::yes;
}

}  // namespace zeroplan
