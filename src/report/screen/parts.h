// The parts of the screen, before it is known how much room there is for each.
#pragma once

#include <string>
#include <vector>

#include "base/tables/table.h"
#include "report/answers.h"

namespace assay {

// "demo: gpt2-25m, 4 arms, 10-400 prompt tokens, 1260 rows, 5 lost; AMD EPYC x 2; 2026-11-22": one
// line of at most `width` columns; long names are shortened.
std::string measured_line(const Findings& findings, size_t width);

// Says if the study's requirements hold, with the first that doesn't; empty: it has none.
std::string requirement_line(const Findings& findings);

// One line a kind of warning, the worst case named.
std::vector<std::string> warning_lines(const Findings& findings);

// The kinds of these warnings, in their order.
std::vector<std::string> warning_kinds(const Findings& findings);

// One row an answer, at most `width` columns: the widest names are shortened until it fits. `same`
// made the answers.
Table answer_table(const Findings& findings, const std::vector<Answer>& answers, SameAnswer same,
                   size_t width);

// The same where the widest names go on in further lines; those that would take more than
// `most_lines` are shortened.
struct AnswerTable {
  Table table;
  std::vector<size_t> lines;  // how many rows of the table each answer takes
};
AnswerTable wrapped_answers(const Findings& findings, const std::vector<Answer>& answers,
                            SameAnswer same, size_t width, size_t most_lines);

// Explains the columns of that table.
std::string answer_legend(const Findings& findings);

// Circumstances that would change the choice: figures that choose another arm, arms that were left
// out and why, differences that the rows can't show, and another length or model that turns the
// choice.
std::vector<std::string> change_lines(const Findings& findings);

}  // namespace assay
