// Which settings of its exchange does a runtime leave open? Front door: knobs.
#include "planner/sweep/sharding_settings.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t overlap_unit = 4;
constexpr std::int64_t layers_unit = 2 * overlap_unit;
constexpr std::int64_t most_layers = 1 << 12;
constexpr std::int64_t bucket_unit = most_layers * layers_unit;

std::int64_t number_of(const ShardingSettings& k) {
  return static_cast<std::int64_t>(k.overlap) + overlap_unit * k.reshards_all +
         layers_unit * k.gathered_layers + bucket_unit * k.reduce_bucket;
}

}  // namespace

void set_sharding_settings(Layout& layout, std::int64_t number) {
  layout.overlap = static_cast<Overlap>(number % overlap_unit);
  layout.reshards_all = number / overlap_unit % 2 != 0;
  layout.gathered_layers = number / layers_unit % most_layers;
  layout.reduce_bucket = number / bucket_unit;
}

Values knobs(const Request& r, const Problem& p) {
  Values list;
  for (const ShardingSettings& knobs : code_of(r.runtime).knobs(r.settings(), p)) {
    list.push_back(number_of(knobs));
  }
  return list;
}

}  // namespace zeroplan
