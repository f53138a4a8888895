#include <cstring>

#include "queue_scene.h"

namespace perdure::sim::queues {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kTimesMax = 4;

Uuid own_id(std::uint64_t seed, std::uint64_t number) {
  Uuid id;
  std::uint64_t halves[2] = {hash64("own ids", seed), number};
  std::memcpy(id.bytes.data(), halves, sizeof halves);
  return id;
}

Errand draw_errand(Random& random, std::uint64_t poison) {
  Errand errand;
  if (chance(random, poison))
    errand.fails = kAlways;
  else if (chance(random, poison * 4))
    errand.fails = static_cast<int>(draw(random, 1, 2));
  errand.way = static_cast<Errand::Way>(draw(random, 0, 4));
  if (chance(random, 50)) errand.load = static_cast<std::int64_t>(draw(random, 500, 3000));
  return errand;
}

RetryPolicy draw_policy(Random& random) {
  return {.delay = milliseconds(draw(random, 20, 500)),
          .factor = 2,
          .max_delay = seconds(2),
          .max = static_cast<int>(draw(random, 0, 3)),
          .then = chance(random, 500) ? RetryPolicy::Then::kDrop : RetryPolicy::Then::kDead};
}

Result<Emitted> part_of(const Result<std::vector<Emitted>>& result, std::size_t i) {
  if (!result) return std::unexpected(result.error());
  return (*result)[i];
}

}  // namespace

Sent Clients::draw_sent(const LifePtr& life) {
  Random& random = life->random();
  Sent sent{.worker = scene_.any_worker(life), .errand = {}, .options = {}, .by_hand = scene_.is("hands")};
  EmitOptions& options = sent.options;
  if (chance(random, 500)) options.priority = static_cast<int>(draw(random, 0, 9));
  if (scene_.is("ordered")) return sent;
  sent.errand = draw_errand(random, static_cast<std::uint64_t>(scene_.knob("poison")));
  if (chance(random, 200)) options.retry = draw_policy(random);
  if (chance(random, 300))
    options.delay = draw_delay(random, milliseconds(scene_.knob("delay_ms")));
  else if (chance(random, 50))
    options.at = DueTime(milliseconds(draw(random, 0, 1'000'000)));
  if (chance(random, 200)) options.id = own_id(scene_.world().seed(), ++last_id_);
  if (scene_.is("unique") && chance(random, 500)) {
    bool lasts = chance(random, 300);
    options.unique = UniqueKey{std::string(lasts ? "lasting " : kUnique) + std::to_string(draw(random, 0, 2)), {}};
    if (lasts) options.unique->lasts = draw_delay(random, seconds(5)) + milliseconds(1);
  }
  if (scene_.is("limits") && chance(random, 600)) options.limit_key = "limited " + std::to_string(draw(random, 0, 1));
  return sent;
}

NewEvent Clients::note(Sent sent) {
  std::int64_t number = scene_.notes().send(std::move(sent));
  const Sent& noted = scene_.notes().sent(number);
  return {noted.worker, noted.errand.to_value(), noted.options};
}

void Clients::emit(const LifePtr& life, Done done) {
  NewEvent event = note(draw_sent(life));
  std::int64_t number = Errand::from(event.value).number;
  life->queue->emit_async(event.worker, std::move(event.value), std::move(event.options),
                          [this, number, done = std::move(done)](const Result<Emitted>& result) mutable {
                            scene_.notes().answered(number, result);
                            done();
                          });
}

void Clients::emit_many(const LifePtr& life, Done done) {
  std::vector<NewEvent> events;
  std::vector<std::int64_t> numbers;
  for (std::uint64_t left = draw(life->random(), 1, 5); left > 0; --left) {
    events.push_back(note(draw_sent(life)));
    numbers.push_back(Errand::from(events.back().value).number);
  }
  life->queue->emit_many_async(
      std::move(events), [this, numbers, done = std::move(done)](const Result<std::vector<Emitted>>& result) mutable {
        for (std::size_t i = 0; i < numbers.size(); ++i) scene_.notes().answered(numbers[i], part_of(result, i));
        done();
      });
}

void Clients::emit_in_transaction(const LifePtr& life, Done done) {
  std::vector<NewEvent> events;
  for (std::uint64_t left = draw(life->random(), 1, 3); left > 0; --left) {
    Sent sent = draw_sent(life);
    sent.in_transaction = true;
    events.push_back(note(std::move(sent)));
  }
  TransactOptions options;
  if (chance(life->random(), 100)) options.timeout = draw_delay(life->random(), milliseconds(50));
  life->node->store().transact_async(
      [queue = *life->queue, events](Transaction& txn) mutable {
        auto emitted = queue.emit_many(txn, events);
        for (std::size_t i = 0; i < events.size(); ++i)
          write_sent(txn, Errand::from(events[i].value).number, emitted[i]);
        return emitted;
      },
      [this, events, done = std::move(done)](const Result<std::vector<Emitted>>& result) mutable {
        for (std::size_t i = 0; i < events.size(); ++i)
          scene_.notes().answered(Errand::from(events[i].value).number, part_of(result, i));
        done();
      },
      options);
}

void Clients::emit_surely(const LifePtr& life, Done done) {
  // What is forgotten as soon as it has ended would be made again.
  if (!scene_.remembers()) return emit(life, std::move(done));
  Sent sent = draw_sent(life);
  sent.options.id = own_id(scene_.world().seed(), ++last_id_);
  sent.options.unique.reset();
  say_again(life, Errand::from(note(std::move(sent)).value).number, kTimesMax, std::move(done));
}

void Clients::say_again(const LifePtr& life, std::int64_t number, int times, Done done) {
  scene_.notes().said_again(number);
  const Sent sent = scene_.notes().sent(number);
  life->queue->emit_async(sent.worker, sent.errand.to_value(), sent.options,
                          [this, life, number, times, done = std::move(done)](const Result<Emitted>& result) mutable {
                            scene_.notes().answered(number, result);
                            bool enough = times == 1 || (result && chance(life->random(), 700));
                            if (life->over() || enough) return done();
                            later(life, milliseconds(draw(life->random(), 1, 300)),
                                  [this, life, number, times, done = std::move(done)]() mutable {
                                    say_again(life, number, times - 1, std::move(done));
                                  });
                          });
}

}  // namespace perdure::sim::queues
