// Which rows do two answers have? Front door: compare_rows.
#include "cli/compare/compare_rows.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

Json at_or_null(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() ? Json() : *found;
}

class Rows {
 public:
  Rows(const Json& a, const Json& b) : a_(a), b_(b) {}

  void add(const char* section, const std::string& name, const char* unit, Json a, Json b) {
    rows_.push_back({section, name, unit, std::move(a), std::move(b)});
  }

  // The keys of both objects, those of `a` first; `differing` leaves out what is alike.
  enum class Which { all, differing };
  void add_object(
      const char* section, const char* unit, const Json& a, const Json& b, Which which) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : a.items()) keys.push_back(key);
    for (const auto& [key, value] : b.items()) {
      if (!a.contains(key)) keys.push_back(key);
    }
    for (const std::string& key : keys) {
      Json left = at_or_null(a, key);
      Json right = at_or_null(b, key);
      if (which == Which::all || left != right) {
        add(section, key, unit, std::move(left), std::move(right));
      }
    }
  }

  void add_question() {
    for (const char* key : {"model", "cluster"}) {
      add_object("layout", "", a_.at(key), b_.at(key), Which::differing);
    }
    if (a_.at("runtime") != b_.at("runtime")) {
      add("layout", "runtime", "", a_.at("runtime"), b_.at("runtime"));
    }
    for (const char* key : {"layout", "settings"}) {
      add_object("layout", "", a_.at(key), b_.at(key), Which::differing);
    }
  }

  void add_memory() {
    const Json& left = worst(a_);
    const Json& right = worst(b_);
    for (const char* key : {"stage", "phase"}) add("memory", key, "", left.at(key), right.at(key));
    add_object("memory", "bytes", left.at("categories"), right.at("categories"), Which::all);
    add("memory", "needed", "bytes", left.at("device_bytes"), right.at("device_bytes"));
    add("memory", "free", "bytes", a_.at("headroom_bytes"), b_.at("headroom_bytes"));
    add("memory", "capacity", "bytes", a_.at("capacity_bytes"), b_.at("capacity_bytes"));
    add("memory", "fit_probability", "", a_.at("fit_probability"), b_.at("fit_probability"));
  }

  void add_communication() { add_object("communication", "bytes", sent(a_), sent(b_), Which::all); }

  void add_step() {
    Json left = a_.at("step");
    Json right = b_.at("step");
    if (left.is_null() && right.is_null()) return;
    if (left.is_null()) left = Json::object();
    if (right.is_null()) right = Json::object();
    for (const auto& [key, value] : left.empty() ? right.items() : left.items()) {
      const bool seconds = key.find("seconds") != key.npos;
      add("step", key, seconds ? "seconds" : "", at_or_null(left, key), at_or_null(right, key));
    }
  }

  std::vector<CompareRow> take() { return std::move(rows_); }

 private:
  static const Json& worst(const Json& answer) {
    return answer.at("stages").at(answer.at("peak").at("stage").get<std::size_t>());
  }

  // Bytes a GPU sends in a step, by group.
  static Json sent(const Json& answer) {
    Json sums = Json::object();
    for (const Json& load : answer.at("communication")) {
      const auto group = load.at("group").get<std::string>();
      sums[group] =
          sums.value(group, std::int64_t{0}) + load.at("sent_bytes_per_gpu").get<std::int64_t>();
    }
    return sums;
  }

  const Json& a_;
  const Json& b_;
  std::vector<CompareRow> rows_;
};

}  // namespace

Json CompareRow::difference() const {
  if (a.is_number_integer() && b.is_number_integer()) {
    return b.get<std::int64_t>() - a.get<std::int64_t>();
  }
  if (a.is_number() && b.is_number()) return b.get<double>() - a.get<double>();
  return nullptr;
}

std::vector<CompareRow> compare_rows(const Json& a, const Json& b) {
  Rows rows(a, b);
  rows.add_question();
  rows.add_memory();
  rows.add_communication();
  rows.add_step();
  return rows.take();
}

}  // namespace zeroplan
