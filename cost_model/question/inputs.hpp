#pragma once
// What something that is remembered depends on, as a type.

#include <algorithm>

#include "cost_model/question/numbers.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// What a plan is made for; the number of GPUs may vary between plans.
struct Question {
  ModelSpec model;
  ClusterSpec cluster;
  RuntimeSpec runtime;  // as asked, before a layout decides any of its settings
};

/// The question of a problem whose layout leaves the settings as they are, or decided them already.
inline Question question_of(const Problem& problem) {
  return {problem.model, problem.cluster, problem.runtime};
}

/// Fields of a problem, as pointers to members of Layout or TrainingSpec, and their values: a key.
/// OnlyFor makes the problem that has nothing else.
template <auto... fields>
class Inputs {
 public:
  using Key = Numbers<sizeof...(fields)>;

  explicit Inputs(const Problem& problem)
      : values_{static_cast<std::int64_t>(part<decltype(fields)>(problem).*fields)...} {}

  const Key& key() const { return values_; }
  /// The key after numbers that tell apart what is made of these inputs.
  template <class... More>
  Numbers<sizeof...(fields) + sizeof...(More)> with(More... more) const {
    Numbers<sizeof...(fields) + sizeof...(More)> key{static_cast<std::int64_t>(more)...};
    std::ranges::copy(values_, key.begin() + sizeof...(More));
    return key;
  }

  void put_into(Problem& problem) const {
    std::size_t i = 0;
    (put(part<decltype(fields)>(problem).*fields, values_[i++]), ...);
  }

 private:
  template <class Member, class P>
  static auto& part(P& problem) {
    return select(problem, Member{});
  }
  template <class P, class T>
  static auto& select(P& problem, T Layout::*) {
    return problem.layout;
  }
  template <class P, class T>
  static auto& select(P& problem, T TrainingSpec::*) {
    return problem.training;
  }
  template <class T>
  static void put(T& field, std::int64_t value) {
    field = static_cast<T>(value);
  }

  Key values_;
};

/// Problems of one question in which nothing is chosen but some inputs: what is made of one of them
/// can depend on nothing else. Not for use by several threads at once.
class OnlyFor {
 public:
  explicit OnlyFor(Question question)
      : asked_(question.runtime),
        problem_{.model = std::move(question.model),
                 .cluster = std::move(question.cluster),
                 .runtime = std::move(question.runtime),
                 .training = {},
                 .layout = {}} {}

  /// The problem of these inputs; `base`: what else of the layout the key stands for. Valid until
  /// the next call.
  template <auto... fields>
  const Problem& operator()(const Inputs<fields...>& inputs, const Layout& base = {}) {
    problem_.layout = base;
    problem_.training = {};
    inputs.put_into(problem_);
    problem_.cluster.gpus = world_size(problem_.layout);
    code_of(asked_).take_layout(asked_, problem_.layout, problem_.runtime);
    return problem_;
  }

  const ModelSpec& model() const { return problem_.model; }
  const ClusterSpec& cluster() const { return problem_.cluster; }
  const RuntimeSpec& asked() const { return asked_; }

 private:
  RuntimeSpec asked_;
  Problem problem_;
};

}  // namespace zeroplan
