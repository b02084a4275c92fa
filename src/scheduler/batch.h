// batch.h - one step's input as flat host arrays. No MLX, so that the scheduler needs none.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/token_id.h"
#include "cache/sequence_pages.h"
#include "kernels/types/row_sampling.h"
#include "scheduler/adapter_slots.h"
#include "scheduler/image_positions.h"
#include "scheduler/image_work.h"

namespace octavo {

// [sequences, columns]; column c of a row is the page of its sequence's c-th block, -1 past the
// last.
struct BlockTable {
  int columns = 0;
  std::vector<PageId> pages = {};
};

// A row whose logits give the logprob of the prompt's next token.
struct PromptLogprobRow {
  int32_t row = 0;
  TokenId target = 0;
  int32_t count = 0;  // of top tokens in addition
};

// Rows of all sequences one after the other; kernels/batch_layout.h has the meanings.
struct Batch {
  std::vector<TokenId> tokens = {};  // [T]; ignored where token_sources is set
  // [T]: -1, or the index of a token drawn by the previous step
  std::vector<int32_t> token_sources = {};
  std::vector<int32_t> positions = {};      // [T]
  std::vector<int32_t> cu_seqlens_q = {0};  // [S + 1]
  std::vector<int32_t> context_lens = {};   // [S]
  // By cache group; the state's, if any, comes last: its columns are those of kernels/state_pages.h.
  std::vector<BlockTable> block_tables = {};
  std::vector<int32_t> logit_rows = {};    // rows that need logits
  std::vector<RowSampling> sampling = {};  // one per logit row
  std::vector<PromptLogprobRow> prompt_logprobs = {};
  std::vector<int32_t> hidden_rows = {};  // rows returned after the final norm
  // For a model that predicts the token after the next one, [T] each, else empty: the token after
  // each row's, and -1 or its index among the tokens that this step draws.
  std::vector<TokenId> next_tokens = {};
  std::vector<int32_t> next_sources = {};
  // [T]: the slot of each row's adapter, -1: none. Empty if no row has one.
  std::vector<int32_t> adapter_slots = {};
  std::vector<AdapterLoad> adapter_loads = {};  // to be written before the step
  std::vector<ImageRows> image_rows = {};
  // [3, T], the axes time, height and width: positions of the rotation. Empty if they are `positions`
  // for all rows.
  std::vector<int32_t> rope_positions = {};
  // [T]: see BatchLayout::last_visible. Empty if each row sees up to its own position.
  std::vector<int32_t> last_visible = {};
  // [T]: which text of a pair a token belongs to, 0 or 1. Empty if it is 0 for all rows.
  std::vector<int32_t> token_types = {};
  ImageWork image_work = {};        // a batch may have nothing else
  bool waits_for_previous = false;  // true if any token_sources or history.pending is set

  int rows() const { return static_cast<int>(tokens.size()); }
  int sequences() const { return static_cast<int>(context_lens.size()); }
};

// Collects the rows of a step.
class BatchBuilder {
 public:
  // `predicts`: the model takes Batch::next_tokens.
  explicit BatchBuilder(const CachePlan& plan, bool predicts = false)
      : groups_(static_cast<int>(plan.groups.size())),
        has_state_(plan.state_pages() > 0),
        predicts_(predicts) {}

  // Adds rows for `tokens`, at positions [start, start + tokens.size()) of their sequence; `pages`
  // must cover them. Returns the index of the first row. `pages`, except its state, must not change
  // until build(). `adapter_slot`: -1: none.
  int add_sequence(std::span<const TokenId> tokens, int start, const SequencePages& pages,
                   int adapter_slot = -1);
  // The token after the row's, if it is known and not in the batch.
  void set_next_token(int row, TokenId token);
  // The row's token is in flight: `source` is its index among the tokens of the previous step.
  void take_token(int row, int source);
  // Draws a token from this row's logits. Returns its index among the drawn tokens.
  int sample_row(int row, RowSampling sampling);
  // Computes logits of the row without drawing.
  void want_logits(int row) { batch_.logit_rows.push_back(row); }
  void want_prompt_logprobs(PromptLogprobRow row) { batch_.prompt_logprobs.push_back(row); }
  void want_hidden(int row) { batch_.hidden_rows.push_back(row); }

  void place_image(ImageRows rows) { batch_.image_rows.push_back(rows); }
  void set_rope(int row, RopePosition position) { ropes_.emplace_back(row, position); }
  // For the newest sequence, all rows of which are in the step, as those of every other one are: each sees
  // all of them. Tokens from `second_text` on, unless it is 0, have type 1.
  void see_all_rows(int second_text);
  // The row sees positions up to this one.
  void set_last_visible(int row, int position) { last_visible_.emplace_back(row, position); }
  void work_on_images(ImageWork work) { batch_.image_work = std::move(work); }

  int rows() const { return batch_.rows(); }
  int prompt_logprob_rows() const { return static_cast<int>(batch_.prompt_logprobs.size()); }
  int hidden_rows() const { return static_cast<int>(batch_.hidden_rows.size()); }
  void load_adapters(std::vector<AdapterLoad> loads) { batch_.adapter_loads = std::move(loads); }
  Batch build();

 private:
  // Batch::rope_positions and Batch::last_visible.
  void fill_positions();

  int groups_;
  bool has_state_;
  bool predicts_;
  Batch batch_;
  std::vector<const SequencePages*> sequences_;
  std::vector<std::vector<PageId>> states_;  // StateLease::table() by sequence
  // By row, those that are set.
  std::vector<std::pair<int, RopePosition>> ropes_;
  std::vector<std::pair<int, int>> last_visible_;
};

}  // namespace octavo
