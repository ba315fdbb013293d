#pragma once
// How a layout exchanges its model states: the fields of which its passes know nothing.

#include "cost_model/question/layout.hpp"

namespace zeroplan {

struct Exchange {
  ZeroStage zero = ZeroStage::none;
  Offload offload = Offload::none;
  std::int64_t hsdp = 0;
  Overlap overlap = Overlap::as_set;
  std::int64_t reduce_bucket = 0;
  bool reshards_all = false;
  friend bool operator==(const Exchange&, const Exchange&) = default;
};

constexpr Exchange exchange_of(const Layout& l) {
  return {l.zero, l.offload, l.hsdp, l.overlap, l.reduce_bucket, l.reshards_all};
}

constexpr void set_exchange(Layout& l, const Exchange& exchange) {
  l.zero = exchange.zero;
  l.offload = exchange.offload;
  l.hsdp = exchange.hsdp;
  l.overlap = exchange.overlap;
  l.reduce_bucket = exchange.reduce_bucket;
  l.reshards_all = exchange.reshards_all;
}

}  // namespace zeroplan
