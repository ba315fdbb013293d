// What do messages between pipeline ranks take? Front doors: message_seconds, sends_block.
#include "cost_model/pipeline/messages.hpp"

#include "cost_model/network/collective_time.hpp"

namespace zeroplan {

bool sends_block(const Problem& p) {
  return code_of(p).sends_block(p);
}

bool sends_blocks_in_one_chunk(const Problem& p) {
  return p.layout.schedule <= Schedule::one_f_one_b;
}

double message_seconds(const Problem& p) {
  const auto seconds = [&](std::string_view name, Collective what, Bytes payload) {
    for (const RankGroup& group : rank_groups(p)) {
      if (group.name != name) continue;
      return collective_time(what, p.cluster, group, payload).seconds;
    }
    return 0.0;
  };
  const Bytes message = pipeline_message(p);
  const double sent = seconds("pp", Collective::send_recv, message);
  return scatters_messages(p) ? sent + seconds("tp", Collective::all_gather, p.layout.tp * message)
                              : sent;
}

}  // namespace zeroplan
