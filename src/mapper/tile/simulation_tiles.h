// The tiles of a simulation: their units, and when the operands and results of each are where.
//
// The units of a tile work in program order, each as soon as it is free and has what it needs. Where the matrix unit
// multiplies before and after the vector unit, the first product of a step goes ahead of the second of the step before,
// so that the units work at once.
#pragma once

#include <limits>
#include <vector>

#include "mapper/tile/simulation_program.h"
#include "mapper/tile/timeline.h"

namespace llmperf::mapper::tile {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::int64_t kKept = 4;  // blocks whose times are remembered
inline std::size_t kept(std::int64_t block) { return at(block & (kKept - 1)); }

struct Tile {
  Program::At next;          // step to run
  std::int64_t a_known = 0;  // steps whose slices have been sent for and have a time
  std::int64_t b_known = 0;
  std::vector<double> a;  // when slices are there
  std::vector<double> b;
  std::vector<double> ends;  // of steps
  std::int64_t starts = 0;   // blocks whose operands have been sent for
  std::int64_t joins = 0;
  double start_at[kKept] = {};
  double join_at[kKept] = {};
  double matrix = 0;  // when the unit is free
  double vector = 0;
  bool pending = false;  // the second product of the step before has not run
  Program::At pending_at;
  double pending_ready = 0;
  std::int64_t results = 0;     // blocks with results
  double finished[kKept] = {};  // when they are ready
  double to_store[kKept] = {};  // bytes
  std::int64_t stored = 0;      // blocks whose results have left
  double stored_at[kKept] = {};
  double matrix_busy = 0;
  double vector_busy = 0;

  std::int64_t ended() const { return pending ? pending_at.number : next.number; }  // steps
};

class Tiles {
 public:
  Tiles(const Machine& machine, const Schedule& schedule, const Program& program, Timeline* timeline);

  Tile& operator[](int i) { return tiles_[at(i)]; }
  const Tile& operator[](int i) const { return tiles_[at(i)]; }
  const std::vector<Tile>& all() const { return tiles_; }
  std::size_t slot(std::int64_t step) const { return at(step & (window_ - 1)); }

  // Runs all steps of a tile whose operands have a time, and of tiles that it adds up partial sums with.
  void advance(int tile);
  // Results of the next block have left.
  void left(int tile, double time);
  // Tiles that have run, or stored, since this was empty; some more than once.
  std::vector<int>& touched() { return touched_; }

  double end() const { return end_; }  // of the last unit's work
  // Passes `bytes` that come from `first` to `last` over a link.
  void pass(int link, double bytes, double& first, double& last);
  double busiest_link() const;

 private:
  using At = Program::At;
  struct Sum {
    int tiles = 0;
    double start = 0;
  };

  // Of the first tile, where a drawing is asked for.
  void draw(int tile, Lane lane, double end, double seconds, std::int64_t step) {
    if (timeline_ != nullptr && tile == 0) timeline_->add(lane, end - seconds, end, step);
  }
  void draw_round(int tile, const Step& step, double begin, std::int64_t number);
  bool advance_one(int tile);
  double operands(const Tile& tile, int i) const;
  double round_about(const Paths& paths, int tile, std::int64_t step, bool is_a) const;
  bool chained(const Step& step) const;
  bool goes_ahead(const At& here) const;
  bool room(const Tile& tile, const At& here, double& data) const;
  void run(int tile, double data, double room_at);
  void flush(int tile, double room_at);
  void end_step(int tile, const At& here, double end);
  double reduce(int group, double start, double bytes, std::int64_t step);
  void finish(int tile, std::int64_t block, double end);

  const Machine& m_;
  const Schedule& s_;
  const Grid& g_;
  const Program& program_;
  Timeline* timeline_;
  std::int64_t window_ = 1;
  std::vector<Tile> tiles_;
  std::vector<Sum> sums_;
  std::vector<double> links_;  // when they are free
  std::vector<double> link_busy_;
  std::vector<int> later_;  // tiles that may go on, as their partial sums are complete
  std::vector<int> touched_;
  double end_ = 0;
};

}  // namespace llmperf::mapper::tile
