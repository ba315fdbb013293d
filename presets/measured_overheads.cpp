// What did a probe find in memory beside tensors? Front door: read_measured_overheads.
#include "presets/measured_overheads.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace zeroplan {
namespace {

constexpr std::int64_t most_difference = std::int64_t{1} << 50;
constexpr Range differences{-most_difference, most_difference};
constexpr Range host_rank_counts{1, 1'000'000};

Bytes summed(const JsonObject& object, std::initializer_list<std::string_view> keys) {
  std::int64_t sum = 0;
  for (const std::string_view key : keys) sum += object.find_integer(key, differences).value_or(0);
  return Bytes{std::max<std::int64_t>(sum, 0)};
}

}  // namespace

MeasuredOverheads read_measured_overheads(const JsonObject& cluster) {
  MeasuredOverheads found;
  if (!cluster.has("measured")) return found;
  const JsonObject measured = cluster.object("measured");
  if (!measured.has("memory")) return found;
  const JsonObject memory = measured.object("memory");
  found.context = summed(memory, {"context_bytes", "modules_bytes", "cublas_bytes"});
  if (!memory.has("communicators")) return found;
  const nlohmann::json& list = memory.value().at("communicators");
  if (!list.is_array()) memory.fail("'communicators' must be a list");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonObject one(list[i], fmt::format("{}: communicators[{}]", memory.where(), i));
    found.communicators.push_back(
        {one.integer("ranks", host_rank_counts),
         summed(one, {"created_bytes", "first_small_all_reduce_bytes",
                      "first_large_all_reduce_bytes", "first_sharding_bytes"})});
  }
  return found;
}

}  // namespace zeroplan
