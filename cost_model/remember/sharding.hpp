#pragma once
// How a layout exchanges its model states: the fields of which its passes know nothing.

#include "cost_model/question/layout.hpp"

namespace zeroplan {

struct Sharding {
  ZeroStage zero = ZeroStage::none;
  Offload offload = Offload::none;
  std::int64_t hsdp = 0;
  Overlap overlap = Overlap::as_set;
  std::int64_t reduce_bucket = 0;
  bool reshards_all = false;
  std::int64_t gathered_layers = 0;
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

constexpr Sharding sharding_of(const Layout& l) {
  return {l.zero, l.offload, l.hsdp, l.overlap, l.reduce_bucket, l.reshards_all, l.gathered_layers};
}

constexpr void set_sharding(Layout& l, const Sharding& sharding) {
  l.zero = sharding.zero;
  l.offload = sharding.offload;
  l.hsdp = sharding.hsdp;
  l.overlap = sharding.overlap;
  l.reduce_bucket = sharding.reduce_bucket;
  l.reshards_all = sharding.reshards_all;
  l.gathered_layers = sharding.gathered_layers;
}

}  // namespace zeroplan
