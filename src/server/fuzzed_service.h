// A service for fuzzers: a toy generator behind a made-up tokenizer and the form of a conversation.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include "engine/tokenizer/make.h"
#include "engine/tokenizer/tokenizer.h"
#include "server/chat_template.h"
#include "server/service.h"
#include "server/toy_generator.h"

namespace assay::server {

struct FuzzedService {
  static constexpr int64_t kVocab = 400;

  engine::Tokenizer tokenizer =
      engine::Tokenizer::parse(engine::make_tokenizer_json(kVocab, engine::TokenizerStyle::kLlama3),
                               "tokenizer")
          .value();
  ToyGenerator generator{kVocab};
  Service service{model(), generator, &tokenizer, ChatTemplate::recognize("<|im_start|>").value()};

  static ServedModel model() {
    ServedModel made;
    made.name = "toy";
    made.architecture = "llama";
    made.dtype = "fp32";
    made.capacity = ToyGenerator::kCapacity;
    made.vocab_size = kVocab;
    return made;
  }
};

}  // namespace assay::server
