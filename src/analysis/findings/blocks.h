// State of a stratum's blocks: arms that ran side by side in them are paired.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace assay {

// State of the stratum's blocks by its rows. Arms are paired where it is kWhole.
enum class BlockState {
  kWhole,             // most rows of each arm stand in whole blocks
  kSeveral,           // blocks hold several repetitions of an arm
  kApart,             // arms have few blocks in common, or their blocks didn't follow one another
  kOrderNotRecorded,  // nobody says in which order the rows were measured
};
std::string_view block_state_name(BlockState state);

// Blocks of a stratum in which several arms have measured rows.
struct StratumBlocks {
  size_t stratum = 0;
  BlockState state = BlockState::kOrderNotRecorded;
  int64_t blocks = 0;  // that hold a measured row
  // Number of these blocks that hold one repetition of every arm, all of one number, and none of
  // whose rows lies between two rows of another block.
  int64_t whole = 0;
  bool paired() const { return state == BlockState::kWhole; }
};

}  // namespace assay
