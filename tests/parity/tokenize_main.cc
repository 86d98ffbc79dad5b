// Encodes and decodes in bulk for test_tokenizer.py: one JSON request a line in, one reply a line
// out.
//   assay_tokenize FOLDER < {"text": HEX, "special": BOOL} > {"ids": [...], "decoded": HEX,
//   "plain": HEX, "streamed": HEX}
// or, to decode alone, {"ids": [...]}.
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "base/records/json.h"
#include "engine/tokenizer/tokenizer.h"

namespace assay {
namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::string to_hex(const std::string& bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

std::string stream(const engine::Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  engine::TokenStream out(tokenizer);
  std::string text;
  for (const int32_t id : ids) text += out.push(id);
  return text + out.finish();
}

Result<std::vector<int32_t>> ids_of(const engine::Tokenizer& tokenizer, const Json& request) {
  if (request.contains("ids")) return request["ids"].get<std::vector<int32_t>>();
  ASSAY_TRY(const std::string hex, json_string(request, "text", "request"));
  ASSAY_TRY(const bool special, json_bool(request, "special", "request"));
  return tokenizer.encode(from_hex(hex), special);
}

Result<Json> answer(const engine::Tokenizer& tokenizer, const std::string& line) {
  ASSAY_TRY(const Json request, parse_json(line, "request"));
  ASSAY_TRY(const auto ids, ids_of(tokenizer, request));
  return Json{{"ids", ids},
              {"decoded", to_hex(tokenizer.decode(ids, false))},
              {"plain", to_hex(tokenizer.decode(ids, true))},
              {"streamed", to_hex(stream(tokenizer, ids))}};
}

Status run(const char* folder) {
  ASSAY_TRY(const auto tokenizer, engine::Tokenizer::open(folder));
  for (std::string line; std::getline(std::cin, line);) {
    ASSAY_TRY(const Json reply, answer(tokenizer, line));
    std::cout << to_json_line(reply) << "\n";
  }
  return {};
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "assay_tokenize: expected a folder\n";
    return 2;
  }
  if (const auto done = assay::run(argv[1]); !done) {
    std::cerr << done.error().message << "\n";
    return 2;
  }
  return 0;
}
