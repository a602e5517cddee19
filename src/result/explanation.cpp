#include "result/explanation.h"

namespace llmperf::result {
namespace {

struct NamedVariable {
  const Variable* of;
};

}  // namespace

Type fields_of(Fields<NamedVariable> f) {
  using V = NamedVariable;
  return f.of<&V::of, &Variable::name>("name", "in the formula")
      .of<&V::of, &Variable::value>("value", "in the SI unit of what it means")
      .of<&V::of, &Variable::meaning>("meaning", "in words");
}

Type fields_of(Fields<Explanation> f) {
  using E = Explanation;
  return f.of<&E::path>("path", "of the number")
      .of<&E::unit>("unit", "\"B\", \"FLOP\", \"s\", \"token/s\", …; empty for a plain number")
      .of<&E::value>("value", "the number")
      .of<&E::formula>("formula", "over the names of `variables`")
      .of<&E::substituted>("substituted", "with their values put in")
      .of("variables", "of the formula",
          [](const E& e) {
            std::vector<NamedVariable> variables;
            for (const Variable& v : e.variables) variables.push_back({&v});
            return variables;
          })
      .of<&E::notes>("notes", "as text")
      .of<&E::parts>("parts", "explanations of variables")
      .named("explanation");
}

Type fields_of(Fields<PathValue> f) {
  using P = PathValue;
  return f.of<&P::path>("path", "as `llmperf explain` takes it")
      .of<&P::value>("value", "the number")
      .of<&P::unit>("unit", "as of an explanation");
}

Type fields_of(Fields<Explainable> f) {
  return f.of<&Explainable::paths>("paths", "of the numbers that can be explained");
}

}  // namespace llmperf::result
