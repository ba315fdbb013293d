// How fast was this machine's GPU, beside others of its name? Front door: read_measured_speeds.
#include "presets/measured_speeds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cost_model/kernel/gemm.hpp"
#include "cost_model/kernel/memory_bound.hpp"

namespace zeroplan {
namespace {

constexpr Range widths{1, std::int64_t{1} << 40};
constexpr Range byte_counts{1, std::int64_t{1} << 50};

std::vector<JsonObject> objects(const JsonObject& parent, const std::string& key) {
  std::vector<JsonObject> list;
  const nlohmann::json& all = parent.value();
  if (!all.contains(key)) return list;
  if (!all.at(key).is_array()) parent.fail(fmt::format("'{}' must be a list", key));
  for (std::size_t i = 0; i < all.at(key).size(); ++i) {
    list.emplace_back(all.at(key)[i], fmt::format("{}: {}[{}]", parent.where(), key, i));
  }
  return list;
}

Product product_of(const JsonObject& object) {
  const std::string layout = object.string("layout");
  if (layout == "TN") return Product::forward;
  if (layout == "NN") return Product::input_gradient;
  if (layout == "NT") return Product::weight_gradient;
  object.fail(fmt::format("'layout' must be TN, NN or NT, found {}", layout));
}

double middle(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double products(const JsonObject& measured, const GpuSpec& gpu) {
  constexpr double slowest = 1e-6;
  if (peak_flops(gpu, Precision::bf16) <= 0) return 1;
  std::vector<double> speeds;
  for (const JsonObject& one : objects(measured, "gemms")) {
    const Gemm gemm{.product = product_of(one),
                    .m = one.integer("m", widths),
                    .n = one.integer("n", widths),
                    .k = one.integer("k", widths)};
    const double seconds = flops(gemm) / (one.number("tflops", slowest) * 1e12);
    speeds.push_back(gemm_seconds(gemm, gpu, Precision::bf16, Pace::sustained) / seconds);
  }
  return speeds.empty() ? 1 : middle(std::move(speeds));
}

}  // namespace

void read_measured_speeds(const JsonObject& object, ClusterSpec& cluster) {
  if (!object.has("measured")) return;
  const JsonObject measured = object.object("measured");
  constexpr double slowest = 1e-6;
  for (const JsonObject& one : objects(measured, "transfers")) {
    const std::string transfer = one.string("transfer");
    const double rate = one.number("gigabytes_per_second", slowest) * giga;
    const Bytes moved{one.integer("moved_bytes", byte_counts)};
    if (transfer == "copy") {
      cluster.gpu.memory_speed = memory_bound_seconds(moved, Access::streaming, cluster.gpu) /
                                 (static_cast<double>(moved.count()) / rate);
    } else if (transfer == "to_device" || transfer == "to_host") {
      double& link = cluster.host_link_bandwidth;
      link = link > 0 ? std::min(link, rate) : rate;
    }
  }
  // After the memory's: a short product waits for it, and would count as slow twice.
  cluster.gpu.product_speed = products(measured, cluster.gpu);
  if (!measured.has("speeds")) return;
  const JsonObject speeds = measured.object("speeds");
  speeds.allow_only({"products", "memory"});
  GpuSpec& gpu = cluster.gpu;
  gpu.product_speed = speeds.find_number("products", slowest).value_or(gpu.product_speed);
  gpu.memory_speed = speeds.find_number("memory", slowest).value_or(gpu.memory_speed);
}

}  // namespace zeroplan
