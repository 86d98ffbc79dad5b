// Index arithmetic in its normal form, and one node for equal expressions.
#include "engine/codegen/ir.h"

#include <gtest/gtest.h>

namespace assay::engine::ir {
namespace {

struct ArenaTest : testing::Test {
  Arena arena;
  ExprId a = arena.var(arena.new_var());
  ExprId b = arena.var(arena.new_var());

  ExprId add(ExprId x, ExprId y) { return arena.make(Op::kIndexAdd, {x, y}); }
  ExprId sub(ExprId x, ExprId y) { return arena.make(Op::kIndexSub, {x, y}); }
  ExprId mul(ExprId x, int64_t y) { return arena.make(Op::kIndexMul, {x, arena.index(y)}); }
  ExprId div(ExprId x, int64_t y) { return arena.make(Op::kIndexDiv, {x, arena.index(y)}); }
  ExprId mod(ExprId x, int64_t y) { return arena.make(Op::kIndexMod, {x, arena.index(y)}); }
};

TEST_F(ArenaTest, EqualExpressionsAreOneNode) {
  EXPECT_EQ(add(a, b), add(b, a));
  EXPECT_EQ(add(add(a, b), a), add(mul(a, 2), b));
  EXPECT_EQ(arena.make(Op::kExp, {arena.number(1)}), arena.make(Op::kExp, {arena.number(1)}));
  EXPECT_NE(arena.number(1), arena.index(1));
  EXPECT_NE(arena.load(0, a), arena.load(1, a));
}

TEST_F(ArenaTest, TermsCancel) {
  EXPECT_EQ(sub(add(a, b), a), b);
  EXPECT_EQ(sub(a, a), arena.index(0));
  EXPECT_EQ(sub(add(a, arena.index(70)), add(a, arena.index(64))), arena.index(6));
  EXPECT_EQ(add(sub(b, a), a), b);
}

TEST_F(ArenaTest, IdentitiesAndConstantsFold) {
  EXPECT_EQ(add(a, arena.index(0)), a);
  EXPECT_EQ(mul(a, 1), a);
  EXPECT_EQ(mul(a, 0), arena.index(0));
  EXPECT_EQ(mul(add(a, arena.index(3)), 4), add(mul(a, 4), arena.index(12)));
  EXPECT_EQ(div(a, 1), a);
  EXPECT_EQ(mod(a, 1), arena.index(0));
  EXPECT_EQ(div(arena.index(17), 5), arena.index(3));
  EXPECT_EQ(mod(arena.index(17), 5), arena.index(2));
}

TEST_F(ArenaTest, DivisionLeavesWholeTermsOut) {
  EXPECT_EQ(div(add(mul(a, 8), b), 8), add(a, div(b, 8)));
  EXPECT_EQ(mod(add(mul(a, 8), b), 8), mod(b, 8));
  EXPECT_EQ(div(add(mul(a, 16), arena.index(9)), 8), add(mul(a, 2), arena.index(1)));
  // b may be the larger: the quotient of the difference isn't the difference of quotients.
  const ExprId difference = sub(mul(a, 8), b);
  EXPECT_EQ(arena[div(difference, 8)].op, Op::kIndexDiv);
  EXPECT_EQ(arena[div(difference, 8)].args[0], difference);
}

TEST_F(ArenaTest, ChoicesOfConstantsFold) {
  const ExprId less = arena.make(Op::kIndexLess, {arena.index(1), arena.index(2)});
  EXPECT_EQ(arena.make(Op::kSelect, {less, a, b}), a);
  const ExprId open = arena.make(Op::kIndexLess, {a, arena.index(2)});
  EXPECT_EQ(arena[arena.make(Op::kSelect, {open, a, b})].op, Op::kSelect);
}

TEST_F(ArenaTest, ConstantTermOfASum) {
  EXPECT_EQ(arena.constant_term(add(mul(a, 3), arena.index(5))), 5);
  EXPECT_EQ(arena.constant_term(sub(a, arena.index(5))), -5);
  EXPECT_EQ(arena.constant_term(b), 0);
}

}  // namespace
}  // namespace assay::engine::ir
