// How many bytes does a collective move? Front door: sent_bytes_per_rank.
#include "cost_model/question/collective.hpp"

namespace zeroplan {

Bytes sent_bytes_per_rank(Collective collective, std::int64_t ranks, Bytes payload) {
  if (ranks <= 1) return {};
  const Bytes part{ceil_div(payload.count(), ranks)};  // S / n
  const Bytes others = part * (ranks - 1);             // S (n-1)/n
  switch (collective) {
    case Collective::all_reduce:  // 2 S (n-1)/n: a reduce-scatter, then an all-gather
      return 2 * others;
    case Collective::all_gather:      // S (n-1)/n: its part to every other rank
    case Collective::reduce_scatter:  // S (n-1)/n: to every other rank that rank's part
    case Collective::all_to_all:      // S (n-1)/n
      return others;
    case Collective::broadcast:  // S: once, to the next rank, which passes it on
    case Collective::send_recv:  // S
      break;
  }
  return payload;
}

}  // namespace zeroplan
