#pragma once
// The things people name: models, GPUs and clusters, from the catalog in the binary or from a file.
// Names match whatever their case; a wrong one is an InputError with the nearest name.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_model/question/cluster.hpp"
#include "cost_model/question/model.hpp"
#include "presets/preset_file.hpp"

namespace zeroplan {

struct CatalogModel {
  std::string name;
  std::string huggingface;  // id on the hub; empty: not there
  std::vector<std::string> aliases;
  std::optional<std::int64_t> published_parameters;  // only where an exact count is published
  std::string published_scope;  // what it counts: "decoder", "decoder and MTP module"
  std::string nominal;          // as people round it: "72B"
  std::string note;
  std::string source;
  bool verified = false;  // the configuration was read at its source, not written from memory
  ModelSpec spec;
  std::vector<std::string> assumptions;
  std::string json;  // the whole preset
};

/// The catalog model with this name, alias or Hugging Face id.
CatalogModel find_model(std::string_view name);

/// The model a person gave: a catalog name, a config.json, a directory that holds one, or "-" for
/// standard input. What the file leaves open is appended to `assumptions`; its text is put into
/// `config` (may be null), which a name of the catalog leaves empty. `as`: see read_hf_config.
ModelSpec load_model(std::string_view model_argument,
                     std::vector<std::string>& assumptions,
                     std::string* config = nullptr,
                     std::string_view as = {});

/// The GPU with this name or alias.
GpuSpec find_gpu(std::string_view name);

/// One node of this kind.
ClusterSpec find_cluster(std::string_view name);

/// `count` GPUs in the nodes they usually come in. Says in `assumptions` (may be null) when the
/// node is a guess. Throws InputError also when count is not from 1 to 1,000,000.
ClusterSpec cluster_of(std::string_view gpu_name,
                       std::int64_t count,
                       std::vector<std::string>* assumptions = nullptr);

/// A cluster preset, or a file of the same form, whose "gpu" may be a name or an object in the form
/// of a GPU preset, and which may say how many "nodes" or "gpus" there are (default: one node). The
/// text of a file is put into `text` (may be null), which a name of the catalog leaves empty.
ClusterSpec load_cluster(std::string_view name_or_file, std::string* text = nullptr);

/// Takes so many GPUs of a cluster, in the order of its nodes. Throws InputError, which `where`
/// opens, where the fabric has fewer.
void set_gpus(ClusterSpec& cluster, std::int64_t gpus, std::string_view where);

/// The cluster that load_cluster reads, from text. `where` opens every message.
ClusterSpec read_cluster(std::string_view json_text, std::string_view where);

}  // namespace zeroplan
