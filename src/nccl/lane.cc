#include "nccl/lane.h"

namespace topotune::nccl {

namespace {

class GroupLane : public coll::Lane {
 public:
  GroupLane(std::unique_ptr<Group> group, coll::Op op) : group_(std::move(group)), op_(op) {}

  Result<void> start(std::size_t bytes) override { return group_->start(question(bytes), iteration_++); }
  Result<bool> ended() override { return group_->ended(); }
  Result<coll::Checked> verify(std::size_t bytes) override {
    return group_->verify(question(bytes), coll::Mode::back_to_back);
  }

 private:
  coll::Question question(std::size_t bytes) const {
    coll::Question q;
    q.op = op_, q.bytes = bytes, q.in_place = op_ == coll::Op::broadcast;
    return q;
  }

  std::unique_ptr<Group> group_;
  coll::Op op_;
  int iteration_ = 0;
};

}  // namespace

std::unique_ptr<coll::Lane> make_lane(std::unique_ptr<Group> group, coll::Op op) {
  return std::make_unique<GroupLane>(std::move(group), op);
}

}  // namespace topotune::nccl
