// Steps of a few seconds' ops, laid out by hand.
#include "estimate/timeline.h"

#include "catch.h"

namespace llmperf::timeline_test {

using namespace llmperf::estimate;

namespace {

constexpr std::size_t kAll = 1000;

TimelineOp op(std::int64_t count, double seconds, int kind = -1) {
  TimelineOp o;
  o.count = count;
  o.seconds = seconds;
  o.layer_kind = kind;
  return o;
}

TimelineStep step_of(std::vector<TimelineOp> ops) {
  TimelineStep step;
  step.ops = std::move(ops);
  step.stage_layers = {{}};
  return step;
}

std::vector<Span> spans_of(const Timeline& timeline, SpanKind kind) {
  std::vector<Span> found;
  for (const Span& span : timeline.spans) {
    if (span.kind == kind) found.push_back(span);
  }
  return found;
}

std::string order_of(const Timeline& timeline) {
  std::string order;
  for (const Span& span : spans_of(timeline, SpanKind::op)) order += static_cast<char>('a' + span.op);
  return order;
}

}  // namespace

TEST_CASE("layers are unrolled in the order of the model") {
  TimelineStep step = step_of({op(1, 1), op(4, 1, 0), op(2, 1, 0), op(2, 1, 1), op(1, 1)});
  // Two kinds that take turns; of the second op there is one in every other layer.
  step.runs = {{1, 2, {0, 2, 4, 6}}, {3, 1, {1, 3}}};
  const Timeline t = lay_out(step, kAll);
  CHECK(order_of(t) == "abdbcdbbce");
  CHECK(t.end == 10);
  CHECK(spans_of(t, SpanKind::layer).size() == 6);
}

TEST_CASE("what is hidden runs beside the op before") {
  TimelineStep step = step_of({op(1, 4), op(1, 3), op(1, 1)});
  step.ops[1].place = graph::Place::network;
  step.ops[1].hidden = 2;
  const std::vector<Span> ops = spans_of(lay_out(step, kAll), SpanKind::op);
  CHECK(ops[1].start == 2);  // 4 - 2
  CHECK(ops[1].end == 5);
  CHECK(ops[2].end == 6);  // 4 + 3 + 1 - 2
}

TEST_CASE("stages take micro-batches as soon as both are free") {
  TimelineStep step = step_of({op(8, 1, 0)});  // four layers, two micro-batches
  step.micro_batches = 2;
  step.runs = {{0, 1, {0, 1, 2, 3}}};
  step.stage_layers = {{3}, {1}};
  const Timeline t = lay_out(step, kAll);
  // sum u / M + (M - 1) / M max u of the whole batch: (6 + 2) / 2 + 6 / 2
  CHECK(t.end == 7);
  double first_of_second = -1;
  for (const Span& span : spans_of(t, SpanKind::op)) {
    if (span.stage == 1 && span.micro_batch == 1) first_of_second = span.start;
  }
  CHECK(first_of_second == 6);
}

TEST_CASE("the device waits for launches as long as the overhead says") {
  TimelineStep step = step_of({op(2, 1), op(1, 2.5)});
  step.ops[0].host = 2;
  step.ops[1].overhead = true;
  step.launching.emplace();
  // 2.5 s of overhead: the host takes 4 s and the device 2, so that 2 s are waited and 0.5 s fixed.
  const Timeline t = lay_out(step, kAll);
  CHECK(t.end == 4.5);
  const std::vector<Span> ops = spans_of(t, SpanKind::op);
  CHECK(ops[0].start == 2.5);
  CHECK(ops[1].start == 3.5);
  const std::vector<Span> launches = spans_of(t, SpanKind::launch);
  CHECK(launches[1].end == ops[1].start);  // 1 s earlier than 0.5 + 4
  CHECK(launches[0].start == -0.5);
  CHECK(t.lead == 0.5);
}

TEST_CASE("micro-batches beyond the limit are drawn in one piece") {
  TimelineStep step = step_of({op(30, 1, 0)});  // three layers, ten micro-batches
  step.micro_batches = 10;
  step.runs = {{0, 1, {0, 1, 2}}};
  step.stage_layers = {{3}};
  const Timeline t = lay_out(step, 12);  // a micro-batch: three ops and three layers
  CHECK(t.drawn == 2);
  CHECK(t.end == 30);
  CHECK(spans_of(t, SpanKind::micro_batch).size() == 8);
}

}  // namespace llmperf::timeline_test
