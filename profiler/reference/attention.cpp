#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "profiler/reference/operators.h"
#include "profiler/reference/row_loops.h"

namespace fixit {
namespace {

constexpr int64_t kRows = 64;  // queries whose scores are held at once: 64 x T floats stay in the caches

class Attention final : public ReferenceOperator {
 public:
  Attention(const AttentionShape& shape, const MatrixProduct& product, int parts)
      : shape_(shape), product_(product), scores_(static_cast<size_t>(parts)) {
    for (auto& scores : scores_) scores.resize(static_cast<size_t>(kRows * shape.keys));
  }

  void run(std::span<const float* const> inputs, std::span<float* const> outputs, int part,
           int parts) override {
    const AttentionShape& s = shape_;
    const int64_t blocks = (s.queries + kRows - 1) / kRows;
    const auto [first, last] = share_of(s.batch * s.heads * blocks, part, parts);
    for (int64_t unit = first; unit < last; ++unit) {
      const int64_t head = unit / blocks;  // of batch x heads
      const int64_t kv_head = head / s.heads * s.kv_heads + head % s.heads / (s.heads / s.kv_heads);
      const int64_t row = unit % blocks * kRows;
      const int64_t at = (head * s.queries + row) * s.depth;
      run_block(inputs[0] + at, inputs[1] + kv_head * s.keys * s.depth,
                inputs[2] + kv_head * s.keys * s.depth, outputs[0] + at,
                s.lse ? outputs[1] + head * s.queries + row : nullptr, row, std::min(kRows, s.queries - row),
                scores_[static_cast<size_t>(part)].data());
    }
  }

  double flops() const override {
    const AttentionShape& s = shape_;
    double pairs = 0;
    for (int64_t query = 0; query < s.queries; ++query) pairs += static_cast<double>(visible(query));
    return 4.0 * static_cast<double>(s.batch * s.heads) * pairs * static_cast<double>(s.depth);
  }
  std::string baseline() const override {
    return product_.name() + " sgemm and softmax by blocks of 64 queries";
  }

 private:
  // Keys that a query sees.
  int64_t visible(int64_t query) const {
    if (!shape_.causal) return shape_.keys;
    return std::clamp<int64_t>(query + 1 + shape_.keys - shape_.queries, 0, shape_.keys);
  }

  void run_block(const float* q, const float* k, const float* v, float* o, float* lse, int64_t row,
                 int64_t rows, float* scores) const {
    const int64_t depth = shape_.depth;
    const int64_t keys =
        visible(row + rows - 1);  // of the block's last row: whole blocks beyond it are skipped
    if (keys > 0) product_.times_transposed(rows, keys, depth, q, depth, k, depth, scores, keys);
    const float scale = 1.0f / std::sqrt(static_cast<float>(depth));
    for (int64_t i = 0; i < rows; ++i) {
      float* line = scores + i * keys;
      const int64_t seen = visible(row + i);
      std::fill(line + seen, line + keys, 0.0f);
      if (seen == 0) {
        if (lse) lse[i] = -std::numeric_limits<float>::infinity();
        continue;
      }
      const float shift = scale * largest(line, seen);
      const float sum = exponentiate(line, scale, shift, seen);
      multiply(line, 1.0f / sum, seen);
      if (lse) lse[i] = shift + std::log(sum);
    }
    if (keys > 0)
      product_.times(rows, depth, keys, scores, keys, v, depth, o, depth);
    else
      std::fill(o, o + rows * depth, 0.0f);
  }

  AttentionShape shape_;
  const MatrixProduct& product_;
  std::vector<std::vector<float>> scores_;  // by part
};

}  // namespace

std::unique_ptr<ReferenceOperator> make_attention(const AttentionShape& shape, const MatrixProduct& product,
                                                  int parts) {
  return std::make_unique<Attention>(shape, product, parts);
}

}  // namespace fixit
