#pragma once
// The story of a step, for people and for programs.

#include <string>

#include "cli/out/terminal.hpp"
#include "cost_model/explain/story.hpp"
#include "planner/fit.hpp"

namespace zeroplan {

/// Who holds what, then pass by pass what each block exchanges, keeps and drops, with what a rank
/// has allocated at most and afterwards; then why it goes so. quiet: without the reasons.
std::string story_text(const FitAnswer& answer, const Story& story, TextStyle style);

/// Schema zeroplan.story/1: the same; bytes and seconds are of each rank of the stage.
std::string story_json(const FitAnswer& answer, const Story& story);

/// A row a block and pass: what it exchanges is summed up.
std::string story_csv(const Story& story);

}  // namespace zeroplan
