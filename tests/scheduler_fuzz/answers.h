// answers.h - the unfinished requests of a round of scheduler_fuzz: compares the scheduler's updates with the
// oracle's answers. No MLX.
#pragma once

#include <map>
#include <vector>

#include "scheduler/batch.h"
#include "scheduler/update.h"
#include "scheduler_fuzz/admissions.h"
#include "scheduler_fuzz/oracle.h"
#include "scheduler_fuzz/totals.h"

namespace octavo {

struct AskedRequest {
  Request request;
  AdmissionOrder::Arrival arrival;
  std::vector<ExpectedAnswer> answers;
  int prompt_logprobs = 0;  // received
};

class FuzzAnswers {
 public:
  // What it refers to must outlive it.
  FuzzAnswers(const FuzzOracle& oracle, const SchedulerOptions& options, AdmissionOrder& admissions,
              FuzzTotals& totals)
      : oracle_(oracle), options_(options), admissions_(admissions), totals_(totals) {}

  const std::map<RequestId, AskedRequest>& asked() const { return asked_; }

  // Call before Scheduler::add, which may admit the request at once.
  void add(RequestId id, AskedRequest asked);
  void take(const std::vector<Update>& updates);

  // The types of a prompt's rows are those of one request with its tokens.
  void check_types(const Batch& batch) const;

 private:
  void take_prompt_logprobs(const Update& update, AskedRequest& asked) const;
  void take_tokens(const Update& update, const AskedRequest& asked, ExpectedAnswer& answer);
  void end(const Update& update, AskedRequest& asked, ExpectedAnswer& answer);
  void end_pooled(const Update& update, const AskedRequest& asked);
  void check_reason(const Update& update, const Request& request, ExpectedAnswer& answer);
  void count_end(const Update& update);

  const FuzzOracle& oracle_;
  const SchedulerOptions& options_;
  AdmissionOrder& admissions_;
  FuzzTotals& totals_;
  std::map<RequestId, AskedRequest> asked_;
};

}  // namespace octavo
