// What does a file ask? Front door: with_plan.
#include "cli/request/plan_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "cli/out/versions.hpp"
#include "cli/request/quantity.hpp"
#include "cli/request/recorded_file.hpp"
#include "cli/request/words.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
#include "presets/preset_file.hpp"
#include "presets/python_numbers.hpp"
#include "presets/recorded_program.hpp"
#include "presets/text_file.hpp"

namespace zeroplan {
namespace {

bool is_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

struct FileRow {
  std::string file;
  std::optional<std::int64_t> row;
};

// FILE or FILE#N; a file whose own name has the sign stays whole.
FileRow split_row(const std::string& text) {
  const std::size_t sign = text.rfind('#');
  if (sign == std::string::npos || is_file(text)) return {text, std::nullopt};
  constexpr std::int64_t most_rows = 1'000'000;
  return {text.substr(0, sign), read_whole("#", text.substr(sign + 1), 1, most_rows)};
}

// Configurations of models have no such key.
bool is_document(std::string_view text) {
  return text.find("\"schema\"") != std::string_view::npos;
}

std::string_view key_of(std::string_view setting) {
  return setting.substr(0, setting.find('='));
}

class Laying {
 public:
  Laying(LayoutArguments& typed, std::string_view source, std::vector<std::string>& notes)
      : typed_(typed), source_(source), notes_(notes), runtime_changes_(false) {}

  void operator()(const std::vector<TypedOption>& said) {
    lay_cluster(find(said, "--cluster"), find(said, "--gpus"));
    if (const std::string* runtime = find(said, "--runtime")) {
      runtime_changes_ = typed_.runtime && usual_word("--runtime", *typed_.runtime) != *runtime;
      lay("--runtime", typed_.runtime, *runtime);
    }
    for (const TypedOption& option : said) {
      if (option.flag == "--set") {
        lay_setting(option.value);
      } else {
        lay_option(option);
      }
    }
    typed_.set.insert(typed_.set.begin(), settings_.begin(), settings_.end());
    if (runtime_changes_ && left_out_ > 0) {
      notes_.push_back(fmt::format("{} settings of {} are left out: --runtime {} has its own",
                                   left_out_, source_, *typed_.runtime));
    }
  }

 private:
  static const std::string* find(const std::vector<TypedOption>& said, std::string_view flag) {
    const auto found = std::find_if(said.begin(), said.end(),
                                    [&](const TypedOption& o) { return o.flag == flag; });
    return found == said.end() ? nullptr : &found->value;
  }

  void note(std::string_view flag, std::string_view typed, std::string_view said) {
    notes_.push_back(fmt::format("{} {}, not {} as {} says", flag, typed, said, source_));
  }

  void lay(std::string_view flag, std::optional<std::string>& typed, const std::string& said) {
    if (!typed) {
      typed = said;
    } else if (usual_word(flag, *typed) != said) {
      note(flag, *typed, said);
    }
  }

  // A number alone is of the same GPUs; others stand in nodes of their own.
  void lay_cluster(const std::string* cluster, const std::string* gpus) {
    const std::string said_gpus = gpus == nullptr ? "" : *gpus;
    const GpuText typed = read_gpu_text(typed_.gpus);
    const GpuText said = read_gpu_text(said_gpus);
    if (!typed_.gpus.empty() && gpus != nullptr && typed_.gpus != said_gpus) {
      note("--gpus", typed_.gpus, said_gpus);
    }
    if (!typed_.cluster.empty()) {
      if (cluster != nullptr && typed_.cluster != *cluster) {
        note("--cluster", typed_.cluster, *cluster);
      }
      typed_.cluster_config.clear();
    } else if (!typed.gpu.empty()) {
      typed_.cluster_config.clear();
    } else if (cluster != nullptr) {
      typed_.cluster = *cluster;
    }
    const bool has_cluster = !typed_.cluster.empty() || !typed_.cluster_config.empty();
    if (typed_.gpus.empty()) {
      const std::string_view kind = has_cluster ? "" : std::string_view(said.gpu);
      typed_.gpus = typed_.nodes ? std::string(kind) : has_cluster ? said.count : said_gpus;
    } else if (typed.gpu.empty() && !has_cluster && !said.gpu.empty()) {
      typed_.gpus = fmt::format("{}x{}", typed.count, said.gpu);
    }
  }

  void lay_setting(const std::string& said) {
    if (runtime_changes_) {
      ++left_out_;
      return;
    }
    for (const std::string& typed : typed_.set) {
      if (key_of(typed) != key_of(said)) continue;
      if (typed != said) note("--set", typed, said);
      return;
    }
    settings_.push_back(said);
  }

  void lay_option(const TypedOption& option) {
    // Either says the other.
    const bool batch = option.flag == "--global-batch" && typed_.gradient_accumulation;
    const bool steps = option.flag == "--gradient-accumulation" && typed_.global_batch;
    if (batch)
      note("--gradient-accumulation", *typed_.gradient_accumulation,
           option.flag + " " + option.value);
    if (steps) note("--global-batch", *typed_.global_batch, option.flag + " " + option.value);
    if (batch || steps) return;
    for (const LayoutOption& known : layout_options()) {
      if (known.flag == option.flag) lay(option.flag, typed_.*known.text, option.value);
    }
  }

  LayoutArguments& typed_;
  std::string_view source_;
  std::vector<std::string>& notes_;
  std::vector<std::string> settings_;
  bool runtime_changes_;
  int left_out_ = 0;
};

}  // namespace

bool names_file(const std::string& text) {
  const std::size_t sign = text.rfind('#');
  return is_file(text) || (sign != std::string::npos && is_file(text.substr(0, sign)));
}

void lay_under(LayoutArguments& typed,
               const std::vector<TypedOption>& said,
               std::string_view source,
               std::vector<std::string>& notes) {
  Laying(typed, source, notes)(said);
}

ImportedConfiguration read_configuration(const std::string& file) {
  if (file == "-") return import_configuration(read_standard_input(), "standard input");
  const FileRow part = split_row(file);
  const std::string text = read_text_file(part.file);
  return part.row ? import_plan(text, in_quotes(part.file), part.row)
                  : import_configuration(text, in_quotes(part.file));
}

namespace {

// What no key of a file says is so wherever it was not typed: what is chosen instead would not be
// the run that the file configures.
void lay_left_open(LayoutArguments& typed, const std::vector<TypedOption>& left_open) {
  for (const TypedOption& option : left_open) {
    for (const LayoutOption& known : layout_options()) {
      if (known.flag == option.flag && !(typed.*known.text)) typed.*known.text = option.value;
    }
  }
}

void lay_configuration(LayoutArguments& typed, std::vector<std::string>& notes) {
  const ImportedConfiguration said = read_configuration(typed.config);
  if (typed.model.empty()) {
    const bool named = !said.model.empty() || said.model_config.empty();
    typed.model = named ? said.model : std::filesystem::path(typed.config).stem().string();
    typed.model_config = said.model_config;
    if (typed.as.empty()) typed.as = said.as;
  }
  if (!said.model.empty() || !said.model_config.empty() || !said.about_model.empty()) {
    if (!typed.model.empty() && typed.model_config.empty() && typed.model != said.model) {
      notes.push_back(
          fmt::format("{} is the model, not what {} says of one", typed.model, typed.config));
    }
  }
  lay_under(typed, said.options, typed.config, notes);
  lay_left_open(typed, said.left_open);
  const GpuText gpus = read_gpu_text(typed.gpus);
  if (said.ranks && gpus.count.empty() && !typed.nodes) {
    typed.gpus = gpus.gpu.empty() ? std::to_string(*said.ranks)
                                  : fmt::format("{}x{}", *said.ranks, gpus.gpu);
  }
  for (const std::string& note : said.notes) {
    notes.push_back(fmt::format("{}: {}", typed.config, note));
  }
  if (!said.not_understood.empty()) {
    notes.push_back(
        fmt::format("{}: not understood: {}", typed.config, fmt::join(said.not_understood, ", ")));
  }
  typed.config.clear();
}

// A plan of another program, catalog or law of time may be answered otherwise now.
void note_versions(const std::map<std::string, std::string>& made_by,
                   std::string_view source,
                   std::vector<std::string>& notes) {
  const Versions& own = versions();
  std::vector<std::string> differing;
  for (const auto& [what, value] : {std::pair{"program", own.program},
                                    {"presets", own.presets},
                                    {"constants", own.constants}}) {
    const auto known = made_by.find(what);
    if (known == made_by.end() || known->second == value) continue;
    differing.push_back(fmt::format("{} {}, now {}", what, known->second, value));
  }
  if (differing.empty()) return;
  notes.push_back(fmt::format("{} was made by another version ({}), its figures may have changed",
                              source, fmt::join(differing, "; ")));
}

void lay_plan(LayoutArguments& typed, std::vector<std::string>& notes) {
  const bool standard_input = typed.model == "-";
  const FileRow plan = standard_input ? FileRow{"-", std::nullopt} : split_row(typed.model);
  const std::string text = standard_input ? read_standard_input() : read_text_file(plan.file);
  if (is_recorded_step(text)) {
    if (plan.row) throw InputError(fmt::format("{}: one step, drop #", in_quotes(plan.file)));
    const std::string source = standard_input ? "standard input" : in_quotes(plan.file);
    return lay_recorded(typed, text, source, source);
  }
  if (!is_document(text)) {
    if (plan.row) throw InputError(fmt::format("{}: not plans of a sweep", in_quotes(plan.file)));
    if (standard_input) {
      typed.model = "standard-input";
      typed.model_config = without_infinities(text);
    }
    return;
  }
  const ImportedConfiguration said =
      import_plan(text, standard_input ? "standard input" : in_quotes(plan.file), plan.row);
  const std::string source = standard_input ? "the plan" : typed.model;
  typed.model = said.model;
  typed.model_config = said.model_config;
  if (typed.as.empty()) typed.as = said.as;
  typed.cluster_config = said.cluster_config;
  const std::size_t before = notes.size();
  lay_under(typed, said.options, source, notes);
  typed.whole = notes.size() == before;
  note_versions(said.versions, source, notes);
}

// What may be asked where no path is opened. Throws InputError.
void require_names(const LayoutArguments& typed) {
  if (!typed.config.empty()) throw InputError("--config: files are not read here");
  if (!typed.cluster.empty()) get_preset("clusters", typed.cluster);
  if (!typed.model.empty() && !parse_parameter_count(typed.model)) {
    get_preset("models", typed.model);
  }
}

}  // namespace

LayoutArguments with_plan(LayoutArguments typed, std::vector<std::string>& notes) {
  if (typed.names_only) {
    require_names(typed);
    return typed;
  }
  if (!typed.config.empty()) lay_configuration(typed, notes);
  if (typed.model_config.empty() && !typed.recorded &&
      (typed.model == "-" || names_file(typed.model))) {
    lay_plan(typed, notes);
  }
  return typed;
}

}  // namespace zeroplan
