// Rows to blocks, and whether these are whole.
#include "analysis/contrast/blocks.h"

#include <algorithm>
#include <tuple>

namespace assay {
namespace {

// A measured row of one of the stratum's arms.
struct PlacedRow {
  int64_t block = 0;
  int64_t order_index = 0;
  int64_t repetition = 0;
  size_t group = 0;
};

struct Block {
  int64_t number = 0;
  int64_t first = 0;  // order_index of its first row
  int64_t last = 0;
  size_t begin = 0;  // its rows' places
  size_t end = 0;
  bool several = false;  // of one arm, or of several numbers
  bool overlaps = false;
  size_t arms = 0;
};

// A warm-up belongs to the block behind it, and is no repetition of it.
bool measured(const Row& row) {
  return row.repetition >= 0 || !row.cold;
}

std::vector<PlacedRow> placed_rows(const Samples& samples, size_t stratum) {
  std::vector<PlacedRow> rows;
  for (size_t g = samples.first_group[stratum]; g < samples.first_group[stratum + 1]; ++g) {
    for (const Row* row : samples.groups[g].rows) {
      if (measured(*row)) rows.push_back({row->block, row->order_index, row->repetition, g});
    }
  }
  std::ranges::sort(rows, {}, [](const PlacedRow& row) {
    return std::tuple(row.block, row.group, row.order_index);
  });
  return rows;
}

std::vector<Block> blocks_in(const std::vector<PlacedRow>& rows) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < rows.size(); ++i) {
    const PlacedRow& row = rows[i];
    const bool fresh = blocks.empty() || blocks.back().number != row.block;
    if (fresh)
      blocks.push_back({row.block, row.order_index, row.order_index, i, i, false, false, 0});
    Block& block = blocks.back();
    const bool another_arm = fresh || rows[i - 1].group != row.group;
    block.arms += another_arm ? 1 : 0;
    block.several = block.several || !another_arm || row.repetition != rows[block.begin].repetition;
    block.first = std::min(block.first, row.order_index);
    block.last = std::max(block.last, row.order_index);
    block.end = i + 1;
  }
  return blocks;
}

void find_overlaps(std::vector<Block>& blocks) {
  std::ranges::sort(blocks, {}, &Block::first);
  size_t reaching = 0;  // of the blocks so far the one that ends last
  for (size_t b = 1; b < blocks.size(); ++b) {
    if (blocks[b].first <= blocks[reaching].last) {
      blocks[b].overlaps = blocks[reaching].overlaps = true;
    }
    if (blocks[b].last > blocks[reaching].last) reaching = b;
  }
}

// Number of rows of each group of the stratum that has any.
std::vector<int64_t> rows_of_arms(const Samples& samples, size_t stratum,
                                  const std::vector<PlacedRow>& rows) {
  const size_t first = samples.first_group[stratum];
  std::vector<int64_t> counts(samples.first_group[stratum + 1] - first, 0);
  for (const PlacedRow& row : rows) ++counts[row.group - first];
  std::erase(counts, 0);
  return counts;
}

}  // namespace

Blocks::Blocks(const Samples& samples, bool order_recorded) : strata_(samples.strata.size()) {
  for (size_t stratum = 0; stratum < strata_.size(); ++stratum) {
    StratumBlocks& summary = strata_[stratum].summary;
    summary.stratum = stratum;
    if (!order_recorded) continue;
    const std::vector<PlacedRow> rows = placed_rows(samples, stratum);
    const std::vector<int64_t> of_arms = rows_of_arms(samples, stratum, rows);
    std::vector<Block> blocks = blocks_in(rows);
    find_overlaps(blocks);
    bool several = false;
    for (const Block& block : blocks) {
      several = several || block.several;
      if (block.several || block.overlaps) {
        strata_[stratum].torn.push_back(block.number);
      } else if (block.arms == of_arms.size()) {
        ++summary.whole;
      }
    }
    std::ranges::sort(strata_[stratum].torn);
    summary.blocks = static_cast<int64_t>(blocks.size());
    const bool most = !of_arms.empty() && 2 * summary.whole > std::ranges::max(of_arms);
    summary.state = most ? BlockState::kWhole : several ? BlockState::kSeveral : BlockState::kApart;
  }
}

bool Blocks::beside(size_t stratum, const Row& row) const {
  return !std::ranges::binary_search(strata_[stratum].torn, row.block);
}

std::vector<StratumBlocks> blocks_of_contrasts(const Samples& samples, const Blocks& blocks) {
  std::vector<StratumBlocks> found;
  for (size_t stratum = 0; stratum < samples.strata.size(); ++stratum) {
    const bool several_arms = samples.first_group[stratum + 1] - samples.first_group[stratum] > 1;
    if (several_arms) found.push_back(blocks.of(stratum));
  }
  return found;
}

}  // namespace assay
