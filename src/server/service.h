// Requests by their paths: what each API asks for becomes a generation, and its tokens an answer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer.h"
#include "server/api.h"
#include "server/generation.h"
#include "server/http_front.h"

namespace assay::server {

// Used from the loop's thread alone, as are the listeners that it gives to the generator.
class Service {
 public:
  // Runs a call in the loop's thread.
  using Post = std::function<void(std::function<void()>)>;
  // `tokenizer`: null where the model has none; prompts are ids then, and answers too. The
  // generator and the tokenizer outlive it. With `post` large bodies are read in a thread of its
  // own, so that other requests' tokens go on meanwhile; else in the loop.
  Service(ServedModel model, Generator& generator, const engine::Tokenizer* tokenizer,
          std::optional<ChatTemplate> chat, Post post = {});
  ~Service();

  // Further lines of /metrics.
  void add_metrics(std::function<std::string()> lines);

  // Paths that need no key: they tell nothing of the model.
  static std::vector<std::string> free_paths();

  void serve(ServedRequest request, const std::shared_ptr<Answer>& answer);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::server
