#pragma once
// Values that live as long as someone refers to them, kept for reuse: a walk over a step makes a
// few for each pass, and a search walks thousands of steps.

#include <cstddef>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

namespace zeroplan {

template <class T>
class CountedPool {
 public:
  /// Shares ownership of a value of the pool, which must outlive it; empty by default.
  class Ref {
   public:
    Ref() = default;
    Ref(const Ref& other) : pool_(other.pool_), index_(other.index_) {
      if (pool_ != nullptr) ++pool_->slots_[index_].owners;
    }
    Ref(Ref&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), index_(other.index_) {}
    Ref& operator=(Ref other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(index_, other.index_);
      return *this;
    }
    ~Ref() {
      if (pool_ != nullptr) pool_->release(index_);
    }

    T* operator->() const { return &*pool_->slots_[index_].value; }
    explicit operator bool() const { return pool_ != nullptr; }

   private:
    friend CountedPool;
    Ref(CountedPool& pool, std::size_t index) : pool_(&pool), index_(index) {}

    CountedPool* pool_ = nullptr;
    std::size_t index_ = 0;
  };

  CountedPool() = default;
  CountedPool(const CountedPool&) = delete;
  CountedPool& operator=(const CountedPool&) = delete;

  template <class... Args>
  Ref make(Args&&... args) {
    if (vacant_ == none) {
      slots_.emplace_back();
      vacant_ = slots_.size() - 1;
    }
    const std::size_t index = vacant_;
    Slot& slot = slots_[index];
    slot.value.emplace(std::forward<Args>(args)...);
    vacant_ = slot.next_vacant;
    slot.owners = 1;
    return Ref(*this, index);
  }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  struct Slot {
    std::optional<T> value;
    int owners = 0;
    std::size_t next_vacant = none;  // while nobody owns it
  };

  // Takes no memory: it runs while an exception that says there is none passes by.
  void release(std::size_t index) noexcept {
    Slot& slot = slots_[index];
    if (--slot.owners > 0) return;
    slot.value.reset();
    slot.next_vacant = std::exchange(vacant_, index);
  }

  std::deque<Slot> slots_;  // a value stays where it is while others are made
  std::size_t vacant_ = none;
};

}  // namespace zeroplan
