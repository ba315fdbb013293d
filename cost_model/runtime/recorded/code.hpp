#pragma once
// A step that somebody else ran: the events of one rank, written down while a runtime's own code
// ran (validator/pytorch), at the layout that it had.
//
// Nothing is described here. Which tensor comes and goes when, what is sent on which stream and
// which kernel works on what shapes is read from the record (program/recorded.hpp), so that an
// architecture, a runtime or a version that no other room knows has an answer. What a record lacks
// is added as for any other run of PyTorch: cuBLAS's workspaces, the allocator's waste,
// communicators and context. It is in no list of runtimes, since no name asks for it.

#include "cost_model/legality/legality.hpp"
#include "cost_model/program/recorded.hpp"

namespace zeroplan {

extern const RuntimeCode recorded_code;
extern const RuleBook recorded_rules;

/// The runtime of this record.
RuntimeSpec recorded_runtime(std::shared_ptr<const RecordedProgram> recorded);

}  // namespace zeroplan
