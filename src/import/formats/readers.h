// One reader for each format: the files of one import, all of that format, to their statements.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "import/csv_mapping.h"
#include "import/imported.h"
#include "import/source_text.h"

namespace assay {

// llama.cpp's llama-bench, -o json, jsonl, csv, sql or md. csv, sql and md have no samples: each of
// their tests is one mean.
Result<Imported> read_llama_bench(std::span<const SourceText> sources);
// llama-bench's sql as one object of texts a row.
Result<std::vector<Json>> llama_bench_sql_rows(const SourceText& source);

// True if a line is the header of llama-bench's Markdown.
bool is_llama_bench_markdown(std::string_view text);
// Its tests as one object each, with the members that JSON has.
Result<std::vector<Json>> llama_bench_markdown_rows(const SourceText& source);

// `vllm bench serve --save-result`: requests with --save-detailed, else the mean of all.
Result<Imported> read_vllm_serve(std::span<const SourceText> sources);

// `vllm bench latency --output-json`: each batch.
Result<Imported> read_vllm_latency(std::span<const SourceText> sources);
// `vllm bench throughput --output-json`: the time of all requests together.
Result<Imported> read_vllm_throughput(std::span<const SourceText> sources);

// guidellm's benchmarks.json: each request.
Result<Imported> read_guidellm(std::span<const SourceText> sources);

// AIPerf: profile_export.jsonl (a request a line), and profile_export_aiperf.json (the mean of all,
// and with the former only its configuration).
Result<Imported> read_aiperf(std::span<const SourceText> sources);

// optimum-benchmark: benchmark.json, or benchmark_report.json with or without the
// benchmark_config.json of its folder.
Result<Imported> read_optimum(std::span<const SourceText> sources);

// nvbench --json (each state's mean) or --jsonbin (its samples, from the files beside it).
Result<Imported> read_nvbench(std::span<const SourceText> sources);

// pytest-benchmark: each round where the file has them, else the mean.
Result<Imported> read_pytest_benchmark(std::span<const SourceText> sources);

// hyperfine --export-json.
Result<Imported> read_hyperfine(std::span<const SourceText> sources);

// criterion's sample.json (each sample), or estimates.json (the mean), with or without the
// benchmark.json of its folder.
Result<Imported> read_criterion(std::span<const SourceText> sources);

// Any CSV with a header.
Result<Imported> read_mapped_csv(std::span<const SourceText> sources, const CsvMapping& mapping);

}  // namespace assay
