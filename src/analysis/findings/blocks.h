// Whether the arms of a stratum ran side by side, block by block: what pairs them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace assay {

// What the stratum's rows show of its blocks. Arms are paired where it is kWhole.
enum class BlockState {
  kWhole,             // most rows of each arm stand in whole blocks
  kSeveral,           // blocks hold several repetitions of an arm
  kApart,             // arms have few blocks in common, or their blocks didn't follow one another
  kOrderNotRecorded,  // nobody says in which order the rows were measured
};
inline constexpr std::array kBlockStates = {BlockState::kWhole, BlockState::kSeveral,
                                            BlockState::kApart, BlockState::kOrderNotRecorded};
std::string_view block_state_name(BlockState state);

// Of a stratum that several arms have measured rows of.
struct StratumBlocks {
  size_t stratum = 0;
  BlockState state = BlockState::kOrderNotRecorded;
  int64_t blocks = 0;  // that hold a measured row
  // Of these, with one repetition of every arm, all of one number, none of whose rows lies between
  // two rows of another block.
  int64_t whole = 0;
  bool paired() const { return state == BlockState::kWhole; }
};

}  // namespace assay
