// What happened in a recorded step? Front door: read_events.
#include "presets/recorded_events.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
#include "presets/recorded_operators.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::json;

constexpr Bytes most_live{std::int64_t{1} << 50};
// Payloads small enough that all that a step sends can be counted.
constexpr Range any_payload{1, std::int64_t{1} << 38};
constexpr Range any_slots{1, 1'000'000};

class Reading {
 public:
  Reading(const JsonObject& document, std::int64_t gpus, RecordedProgram& out)
      : json_(document), gpus_(gpus), out_(out) {}

  void operator()() {
    each("groups", [&](const JsonObject& group) { out_.groups.push_back(read_group(group)); });
    each("tensors", [&](const JsonObject& kind) { add_slots(kind); });
    each("calls", [&](const JsonObject& call) { out_.calls.push_back(read_call(call)); });
    each("operators", [&](const JsonObject& op) {
      out_.operators.push_back(read_operator(op));
      out_.operators.back().name = name_in(op, "name");
      if (!op.string("scope").empty()) out_.operators.back().scope = name_in(op, "scope");
    });
    taken_.resize(out_.slots.size());
    used_.resize(out_.slots.size());
    read_resident();
    read_passes();
    if (std::ranges::find(used_, false) != used_.end()) {
      json_.fail("'tensors' has more slots than are ever taken");
    }
  }

 private:
  const Json& list(std::string_view key) const {
    const auto found = json_.value().find(std::string(key));
    if (found == json_.value().end() || !found->is_array()) {
      json_.fail(fmt::format("'{}' must be a list", key));
    }
    return *found;
  }

  template <class Read>
  void each(std::string_view key, Read&& read) const {
    std::size_t index = 0;
    for (const Json& entry : list(key)) {
      read(JsonObject(entry, fmt::format("{}: {}[{}]", json_.where(), key, index++)));
    }
  }

  // A name, which goes to the terminal: short, and without control characters.
  std::string_view name_in(const JsonObject& object, std::string_view key) const {
    constexpr std::size_t longest = 200;
    std::string name = object.string(key);
    const bool plain = std::ranges::none_of(
        name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (name.empty() || name.size() > longest || !plain) {
      object.fail(fmt::format("'{}' must be a name of 1 to {} letters", key, longest));
    }
    return out_.names.emplace_back(std::move(name));
  }

  template <class Enum>
  Enum choice_in(const JsonObject& object, std::string_view key) const {
    const std::string text = object.string(key);
    if (const auto value = parse_name<Enum>(text)) return *value;
    object.fail(fmt::format("'{}' is {}: must be one of {}", key, in_quotes(text),
                            fmt::join(names<Enum>(), ", ")));
  }

  RecordedGroup read_group(const JsonObject& json) const {
    json.allow_only({"name", "ranks", "stride"});
    const RecordedGroup group{name_in(json, "name"), json.integer("ranks", {1, gpus_}),
                              json.integer("stride", {1, gpus_})};
    if ((group.ranks - 1) * group.stride >= gpus_) {
      json.fail(
          fmt::format("{} ranks {} apart are not among {}", group.ranks, group.stride, gpus_));
    }
    if (std::ranges::find(out_.groups, group.name, &RecordedGroup::name) != out_.groups.end()) {
      json.fail(fmt::format("group {} is there twice", in_quotes(std::string(group.name))));
    }
    return group;
  }

  Stream stream_in(const JsonObject& json) const {
    constexpr std::string_view known[] = {"compute", "gather", "reduce"};  // in the order of Stream
    const std::string text = json.string("stream");
    const auto found = std::ranges::find(known, text);
    if (found == std::end(known)) {
      json.fail(fmt::format("'stream' is {}: must be one of {}", in_quotes(text),
                            fmt::join(known, ", ")));
    }
    return static_cast<Stream>(found - std::begin(known));
  }

  void add_slots(const JsonObject& json) {
    json.allow_only({"name", "bytes", "category", "stream", "slots"});
    const std::int64_t bytes = json.integer("bytes", any_bytes);
    const TensorSpec spec{name_in(json, "name"), Bytes{round_up(bytes, allocation_unit)},
                          choice_in<Category>(json, "category"), stream_in(json)};
    if (spec.category > Category::workspace) json.fail("'category' is of no tensor");
    const auto count = static_cast<std::size_t>(json.integer("slots", any_slots));
    if (out_.slots.size() + count > static_cast<std::size_t>(any_slots.most)) {
      json.fail(fmt::format("more than {} slots", any_slots.most));
    }
    out_.slots.insert(out_.slots.end(), count, spec);
  }

  Call read_call(const JsonObject& json) const {
    json.allow_only({"group", "collective", "payload_bytes", "stream"});
    const std::string name = json.string("group");
    const auto group = std::ranges::find(out_.groups, name, &RecordedGroup::name);
    if (group == out_.groups.end()) {
      json.fail(fmt::format("'group' is {}, which is none of 'groups'", in_quotes(name)));
    }
    return {.group = group->name,
            .collective = choice_in<Collective>(json, "collective"),
            .payload = Bytes{json.integer("payload_bytes", any_payload)},
            .beside = stream_in(json) == Stream::compute ? Beside::nothing : Beside::pass};
  }

  void read_resident() {
    for (const Json& entry : list("resident")) {
      if (!entry.is_number_integer() || entry < 0 || entry >= out_.slots.size()) {
        json_.fail(fmt::format("'resident' holds {}: no slot of 'tensors'", entry.dump()));
      }
      const auto slot = entry.get<std::int32_t>();
      take(slot, "'resident'");
      out_.resident.push_back(slot);
    }
  }

  void take(std::int32_t slot, std::string_view where) {
    const auto index = static_cast<std::size_t>(slot);
    if (taken_[index]) json_.fail(fmt::format("{}: slot {} is taken twice", where, slot));
    taken_[index] = used_[index] = true;
    live_ += out_.slots[index].bytes;
    if (live_ > most_live) json_.fail(fmt::format("{}: more than 1 PiB are live", where));
  }

  void read_passes() {
    const Json& passes = list("passes");
    if (passes.size() < 3 || passes.size() % 2 == 0) {
      json_.fail("'passes' must be a forward and a backward pass of each micro-batch, and a step");
    }
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const JsonObject pass(passes[i], fmt::format("{}: passes[{}]", json_.where(), i));
      pass.allow_only({"pass", "events"});
      const bool last = i + 1 == passes.size();
      const std::string_view kind = last ? "optimizer_step" : i % 2 == 0 ? "forward" : "backward";
      if (pass.string("pass") != kind) pass.fail(fmt::format("'pass' must be {} here", kind));
      std::vector<Event> events = read_pass(pass);
      const bool works = std::ranges::any_of(events, &Event::operates);
      if (!works && !last) pass.fail("no kernel runs in it");
      if (last) {
        out_.step = std::move(events);
      } else {
        out_.passes.push_back(std::move(events));
      }
    }
  }

  std::vector<Event> read_pass(const JsonObject& pass) {
    std::vector<Event> events;
    for (const std::string& word : pass.strings("events")) {
      const Event event = read_event(pass, word, events.size());
      const std::string where = event.is_of_tensor() ? place(events.size()) : "";
      if (event.allocates()) take(event.index, where.c_str());
      if (event.frees()) {
        const auto index = static_cast<std::size_t>(event.index);
        if (!taken_[index]) {
          pass.fail(fmt::format("{}: slot {} is freed before it is taken", where, event.index));
        }
        taken_[index] = false;
        live_ -= out_.slots[index].bytes;
      }
      events.push_back(event);
    }
    return events;
  }

  static std::string place(std::size_t index) { return fmt::format("event {}", index); }

  Event read_event(const JsonObject& pass, const std::string& word, std::size_t index) const {
    const auto refuse = [&](std::string_view why) {
      pass.fail(fmt::format("{} is {}: {}", place(index), in_quotes(word), why));
    };
    const char kind = word.empty() ? ' ' : word.front();
    const std::string_view rest = std::string_view(word).substr(word.empty() ? 0 : 1);
    if (kind == '=') {
      const auto phase = parse_name<Phase>(rest);
      if (!phase || *phase < Phase::forward || *phase > Phase::optimizer_step) refuse("no phase");
      return {static_cast<std::int32_t>(*phase), Event::Kind::phase};
    }
    std::int32_t number = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc() || end != rest.data() + rest.size() || number < 0) {
      refuse("must be +, -, c or k and a number, or = and a phase");
    }
    const auto among = [&](std::size_t count, Event::Kind of) -> Event {
      if (static_cast<std::size_t>(number) >= count) refuse("there are not so many");
      return {number, of};
    };
    switch (kind) {
      case '+':
        return among(out_.slots.size(), Event::Kind::allocate);
      case '-':
        return among(out_.slots.size(), Event::Kind::free);
      case 'c':
        return among(out_.calls.size(), Event::Kind::call);
      case 'k':
        return among(out_.operators.size(), Event::Kind::operation);
      default:
        refuse("unknown kind of event");
    }
    return {};
  }

  const JsonObject& json_;
  std::int64_t gpus_;
  RecordedProgram& out_;
  std::vector<bool> taken_, used_;  // by slot
  Bytes live_;
};

}  // namespace

void read_events(const JsonObject& document, std::int64_t gpus, RecordedProgram& out) {
  Reading(document, gpus, out)();
}

}  // namespace zeroplan
