// Ranks of the stand-in of libhccl.so that meet.
#pragma once

#include <string>
#include <vector>

#include "standin.h"

namespace standin {

struct Membership {
  int rank = -1;
  int ranks = 0;  // 0: no member
};
// Of the rank whose communicator is on that device, in the group of that name.
Membership membership(const std::string& group, int device);

// In a task: every rank of the group brings its numbers to the round; `sum` is what they add up to. Returns a code when
// the others do not come.
int exchange(Stream& stream, const std::string& group, Membership member, int round, const std::vector<double>& mine,
             std::vector<double>& sum);
// The same, and what each brought.
int gather(Stream& stream, const std::string& group, Membership member, int round, const std::vector<double>& mine,
           std::vector<std::vector<double>>& all);

}  // namespace standin
