// What does a row say? Front door: read_row.
#include "tests/accuracy/row.hpp"

#include <charconv>
#include <nlohmann/json.hpp>

#include "tests/accuracy/completed.hpp"

namespace zeroplan::accuracy {
namespace {

using Json = nlohmann::json;

constexpr double gib = 1024.0 * 1024 * 1024;

// The value under `key`; empty when it is null or absent.
template <class T>
std::optional<T> find(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  return found->template get<T>();
}

Count find_count(const Json& object, const char* key) {
  return find<std::int64_t>(object, key);
}

Text find_text(const Json& object, const char* key) {
  return find<std::string>(object, key);
}

bool is_true(const Json& object, const char* key) {
  return find<bool>(object, key).value_or(false);
}

// An object, or an empty one when the row has none.
Json part(const Json& object, const char* key) {
  return find<Json>(object, key).value_or(Json::object());
}

ExpertShape read_experts(const Json& moe) {
  return {.experts = find_count(moe, "experts"),
          .topk = find_count(moe, "topk"),
          .ffn = find_count(moe, "expert_ffn"),
          .shared_ffn = find_count(moe, "shared_ffn").value_or(0),
          .dense_layers = find_count(moe, "dense_layers"),
          .every_layer = find_text(moe, "layer_freq").value_or("1") == "1",
          .etp = find_count(moe, "etp"),
          .padded_to_capacity =
              is_true(moe, "pad_to_capacity") ||
              find_text(moe, "dispatcher").value_or("").find("padded") != std::string::npos};
}

MlaSpec read_latent(const Json& mla) {
  return {.q_lora_rank = find_count(mla, "q_lora").value_or(0),
          .kv_lora_rank = mla.at("kv_lora").get<std::int64_t>(),
          .qk_nope_head_dim = mla.at("qk_nope").get<std::int64_t>(),
          .qk_rope_head_dim = mla.at("qk_rope").get<std::int64_t>(),
          .v_head_dim = mla.at("v_head").get<std::int64_t>()};
}

ModelShape read_model(const Json& m) {
  ModelShape shape{.name = m.at("name").get<std::string>(),
                   .family = find_text(m, "model_type").value_or(""),
                   .layers = find_count(m, "layers"),
                   .hidden = find_count(m, "hidden"),
                   .heads = find_count(m, "heads"),
                   .kv_heads = find_count(m, "kv_heads"),
                   .ffn = find_count(m, "ffn"),
                   .vocab = find_count(m, "vocab"),
                   .padded_vocab = find_count(m, "padded_vocab"),
                   .head_dim = find_count(m, "head_dim"),
                   .max_positions = find_count(m, "max_pos"),
                   .gated = find<bool>(m, "gated_mlp"),
                   .tied = find<bool>(m, "tied_embeddings"),
                   .bias = find<bool>(m, "bias"),
                   .learned_positions = find<bool>(m, "learned_pos_emb"),
                   .qkv_bias = is_true(m, "qkv_bias"),
                   .qk_norm = is_true(m, "qk_norm"),
                   .parallel_attention = is_true(m, "parallel_attn"),
                   .embedding_norm = is_true(m, "embedding_layernorm"),
                   .norm = find_text(m, "norm")};
  if (!shape.head_dim) shape.head_dim = find_count(m, "kv_channels");
  if (const Json moe = part(m, "moe"); !moe.empty()) shape.experts = read_experts(moe);
  if (const Json mla = part(m, "mla"); !mla.empty()) shape.latent = read_latent(mla);
  if (const Json config = part(m, "config"); !config.empty()) shape.config = config.dump();
  return shape;
}

// Publishers give offloading as a flag, a count of layers or the name of what is offloaded.
bool offloads(const Json& zero) {
  for (const char* key : {"offload", "cpu_offload"}) {
    const auto found = zero.find(key);
    if (found == zero.end() || found->is_null()) continue;
    if (found->is_boolean() ? found->get<bool>() : *found != "none") return true;
  }
  return find<double>(zero, "optimizer_cpu_offload_fraction").value_or(0) > 0 ||
         find_count(zero, "activation_offload_layers").value_or(0) > 0;
}

Sharding read_sharding(const Json& zero) {
  return {.stage = find_count(zero, "stage"),
          .gradient_type = find_text(zero, "grad_dtype"),
          .degree = find_count(zero, "shard_degree"),
          .reshard_after_forward = find_text(zero, "reshard_after_forward"),
          .reduce_bucket_size = find_count(zero, "reduce_bucket_size"),
          .offload = offloads(zero)};
}

RecomputeChoice read_recompute(const Json& recompute) {
  RecomputeChoice choice{.kind = find_text(recompute, "kind"),
                         .method = find_text(recompute, "method"),
                         .layers = find_count(recompute, "num_layers")};
  const auto modules = recompute.find("modules");
  if (modules == recompute.end()) return choice;
  if (modules->is_string()) choice.modules = {modules->get<std::string>()};
  if (modules->is_array()) choice.modules = modules->get<std::vector<std::string>>();
  return choice;
}

// nvidia-smi and torch count in powers of two, whatever letters are printed; GB means 1e9 only
// where nothing says so.
double bytes_in_unit(std::string_view unit, std::string_view what) {
  const bool binary = unit.starts_with("GiB") || unit.find("2^30") != std::string_view::npos ||
                      what.find("2^30") != std::string_view::npos ||
                      what.find("device_used") != std::string_view::npos;
  if (unit.starts_with("MiB")) return gib / 1024;
  return binary ? gib : 1e9;
}

std::optional<Measurement> read_measurement(const Json& measured) {
  const auto value = find<double>(measured, "value");
  if (!value || *value <= 0) return std::nullopt;
  Measurement m{.what = find_text(measured, "what")};
  m.bytes = *value * bytes_in_unit(measured.at("unit").get<std::string>(), m.what.value_or(""));
  if (const auto exact = find_count(measured, "bytes")) m.bytes = static_cast<double>(*exact);
  if (const auto reserved = find<double>(measured, "max_reserved_gib")) {
    m.reserved_bytes = *reserved * gib;
  }
  const Json rank = measured.value("rank", Json());
  if (rank.is_number_integer()) m.rank = rank.get<std::int64_t>();
  if (rank.is_string()) m.last_rank = rank.get<std::string>().starts_with("last");
  return m;
}

// The parts of a list, with bars between them; else the value as text.
std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& part : value) text += (text.empty() ? "" : "|") + text_of(part);
  return text;
}

std::map<std::string, std::string> read_arguments(const Json& arguments) {
  std::map<std::string, std::string> result;
  for (const auto& [key, value] : arguments.items()) {
    result[key] = text_of(value);
  }
  return result;
}

Throughput read_throughput(const Json& json) {
  Throughput throughput{.step_seconds = find<double>(json, "step_time_s"),
                        .tokens_per_second = find<double>(json, "tokens_per_s_per_gpu"),
                        .flops_per_second = find<double>(json, "tflops_per_gpu"),
                        .mfu = find<double>(json, "mfu")};
  if (throughput.flops_per_second) *throughput.flops_per_second *= 1e12;
  return throughput;
}

void read_layout(const Json& json, Row& row) {
  row.gpus = find_count(json, "n_gpus");
  row.sequence = find_count(json, "seq");
  row.micro_batch = find_count(json, "micro_batch");
  row.global_batch = find_count(json, "global_batch");
  row.dp = find_count(json, "dp");
  row.tp = find_count(json, "tp");
  row.pp = find_count(json, "pp");
  row.vpp = find_count(json, "vpp");
  row.cp = find_count(json, "cp");
  row.ep = find_count(json, "ep");
  row.etp = find_count(json, "etp");
  row.sequence_parallel = find<bool>(json, "sp");
  row.schedule = find_text(json, "schedule");
}

}  // namespace

std::string Row::argument(std::string_view name, std::string_view otherwise) const {
  const auto found = arguments.find(std::string(name));
  return found == arguments.end() ? std::string(otherwise) : found->second;
}

std::int64_t Row::argument(std::string_view name, std::int64_t otherwise) const {
  const std::string text = argument(name, "");
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? value : otherwise;
}

Row read_row(const Json& json) {
  Row row{.id = json.at("id").get<std::string>(),
          .family = json.at("family").get<std::string>(),
          .source = json.at("source").get<std::string>(),
          .framework = json.at("framework").get<std::string>(),
          .version = find_text(json, "framework_version").value_or(""),
          .notes = find_text(json, "notes").value_or(""),
          .complete = json.at("complete").get<bool>(),
          .gpu = find_text(json, "gpu"),
          .model = read_model(json.at("model")),
          .arguments = read_arguments(part(json.at("model"), "args")),
          .completed = read_arguments(part(json, "completed")),
          .sharding = read_sharding(part(json, "zero")),
          .recompute = read_recompute(part(json, "recompute")),
          .precision = find_text(json, "precision"),
          .optimizer = find_text(json, "optimizer"),
          .attention = find_text(json, "attention"),
          .measured = read_measurement(part(json, "measured"))};
  row.arguments.merge(read_arguments(part(json, "settings")));
  read_layout(json, row);
  row.compiled = find<bool>(json, "compile").value_or(false);
  row.silent = find_text(json, "ranks") == "fake process group" && row.gpus.value_or(1) > 1;
  row.throughput = read_throughput(json);
  row.outcome =
      json.at("outcome").get<std::string>() == "oom" ? Outcome::out_of_memory : Outcome::ran;
  complete_fields(row);
  return row;
}

}  // namespace zeroplan::accuracy
