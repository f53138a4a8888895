#include "queue_scene.h"

namespace perdure::sim::queues {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kOldMax = 30;

bool was_done(Reader& reader, std::int64_t number, Did did, const Token& token) {
  for (const Deed& deed : read_deeds(reader, number))
    if (deed.did == did && deed.token == token.stamp) return true;
  return false;
}

}  // namespace

void Hands::start(const LifePtr& life) {
  later(life, draw_delay(life->random(), milliseconds(500)), [this, life] { claim(life); });
}

void Hands::claim(const LifePtr& life) {
  constexpr Duration kWaits[] = {Duration::zero(), milliseconds(300), seconds(5), std::chrono::minutes(2)};
  Random& random = life->random();
  if (!life->queue) return start(life);
  // Once it is quiet nobody but the handlers is at work, except where there is none.
  std::string worker = scene_.quiet() || chance(random, 600) ? std::string(kByHand) : scene_.any_worker(life);
  ClaimOptions options{.max = draw(random, 1, 4),
                       .wait = kWaits[scene_.quiet() ? 3 : draw(random, 0, 3)],
                       .lock = milliseconds(draw(random, 50, static_cast<std::uint64_t>(scene_.knob("lock_ms"))))};
  life->queue->claim_async(worker, options, [this, life](const Result<std::vector<Claimed>>& claimed) {
    if (life->over()) return;
    if (claimed)
      for (const Claimed& event : *claimed) {
        scene_.claimed(life, event, "by hand");
        work(life, {Errand::from(event.value).number, event.id, event.token.value_or(Token{})});
      }
    later(life, draw_delay(life->random(), milliseconds(300)), [this, life] { claim(life); });
  });
}

void Hands::work(const LifePtr& life, const Held& held) {
  Random& random = life->random();
  if (old_.size() < kOldMax)
    old_.push_back(held);
  else
    old_[draw(random, 0, kOldMax - 1)] = held;
  Duration took = draw_delay(random, milliseconds(scene_.quiet() ? 20 : scene_.knob("lock_ms") * 3 / 2));
  later(life, took, [this, life, held] {
    std::uint64_t pick = scene_.quiet() ? 0 : draw(life->random(), 0, 99);
    if (pick < 50) return act(life, held, Did::kEffect, [this, life, held] { repeat_completion(life, held, [] {}); });
    if (pick < 65) return act(life, held, Did::kFail, [] {});
    if (pick < 75) return act(life, held, Did::kRelease, [] {});
    if (pick < 90)
      return act(life, held, Did::kExtend, [this, life, held] {
        if (!life->over()) work(life, held);
      });
    // Otherwise it is left to its deadline.
  });
}

void Hands::act(const LifePtr& life, const Held& held, Did what, Done done) {
  FailOptions failing;
  if (chance(life->random(), 200)) failing.retry_in = draw_delay(life->random(), seconds(1));
  failing.give_up = chance(life->random(), 100);
  Duration lock = milliseconds(draw(life->random(), 50, static_cast<std::uint64_t>(scene_.knob("lock_ms"))));
  life->node->store().transact_async(
      [queue = *life->queue, held, what, failing, lock](Transaction& txn) mutable {
        bool again = what != Did::kExtend && was_done(txn, held.number, what, held.token);
        switch (what) {
          case Did::kEffect:
            queue.complete(txn, held.id, held.token, held.number);
            break;
          case Did::kFail:
            queue.fail(txn, held.id, held.token, "by hand", failing);
            break;
          case Did::kRelease:
            queue.release(txn, held.id, held.token);
            break;
          default:
            queue.extend(txn, held.id, held.token, lock);
        }
        // Saying again what had succeeded is fine, and has no effect.
        if (!again) write_deed(txn, held.number, what, held.token);
      },
      [this, held, what, done = std::move(done)](const Result<void>& result) mutable {
        scene_.notes().did(held.number, what, result);
        done();
      });
}

/// The answer may have been lost on its way, so that saying it again is fine. What it wrote is not written again.
void Hands::repeat_completion(const LifePtr& life, const Held& held, Done done) {
  if (life->over() || !chance(life->random(), 300)) return done();
  life->node->store().transact_async(
      [queue = *life->queue, held](Transaction& txn) mutable {
        if (!was_done(txn, held.number, Did::kEffect, held.token)) return false;
        queue.complete(txn, held.id, held.token, held.number);
        return true;
      },
      [this, held, done = std::move(done)](const Result<bool>& result) mutable {
        bool refused = !result && result.error().code == ErrorCode::kStaleToken;
        if (refused && scene_.remembers())
          scene_.notes().wrong(QueueNotes::text(held.number) + " was completed, and saying so again was refused");
        done();
      });
}

void Hands::present_old(const LifePtr& life, Done done) {
  if (old_.empty()) return done();
  Held held = old_[draw(life->random(), 0, old_.size() - 1)];
  act(life, held, static_cast<Did>(draw(life->random(), 0, 3)), std::move(done));
}

}  // namespace perdure::sim::queues
