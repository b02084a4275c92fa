// fair_turns.h - numbers sequences so that API keys, and the calls of a key, take turns. No MLX.
// Engine thread only.
//
// Sequences are served by their turn, lower first, then by arrival. A turn is fixed when the
// sequence arrives. The calls of an owner start at successive turns, so an owner that sends one
// sequence per call is served in order of arrival. The k-th sequence of a call comes k - 1 strides
// after its first, so a call of a thousand sequences has most of them after the next calls. Within
// a turn, first sequences of calls go before others. No newcomer has a lower turn than the lowest
// open one, so a sequence whose turn is late because of its owner's earlier calls is not overtaken
// once these have ended.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace octavo {

class FairTurns {
 public:
  // slots: how many sequences run at once. A newcomer's turn comes at most about so many turns
  // before the latest admitted one, so past use does not count against an owner for long.
  explicit FairTurns(int slots) : slots_(slots) {}

  // A sequence arrives. Returns its place: twice its turn, plus one if it is not the first of its
  // call.
  int64_t enter(const std::string& owner, uint64_t call);
  // The sequence runs for the first time.
  void admitted(int64_t place);
  // A running sequence was interrupted for a newcomer. Later newcomers come one turn later, so a
  // sequence is interrupted at most about once for each turn between it and the first newcomer.
  void gave_way() { ++floor_; }
  // The sequence with this place has ended.
  void leave(const std::string& owner, uint64_t call, int64_t place);

 private:
  struct Call {
    int64_t start = 0;   // turn of its first sequence
    int64_t last = 0;    // turn of its newest sequence
    int64_t stride = 0;  // 0 while it has had only one
    int open = 0;
  };
  struct Owner {
    std::map<uint64_t, Call> calls;  // with open sequences
    std::multiset<int64_t> starts;   // of these calls
    int64_t wide_calls = 0;          // calls with a stride
  };

  int64_t slots_;
  int64_t floor_ = 0;  // turns of newcomers are higher
  uint64_t admissions_ = 0;
  std::multiset<int64_t> open_;          // turns of all open sequences
  std::map<std::string, Owner> owners_;  // with open sequences
};

}  // namespace octavo
