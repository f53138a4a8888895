#pragma once

#include "conformance/conformance.h"
#include "conformance/faulty_engine.h"

namespace perdure::conformance {

/// A store on the engine under test, behind one that fails by script.
class FaultyConformance : public Conformance {
 protected:
  FaultyConformance() { open_on(std::make_unique<FaultyEngine>(make_engine_anew(), script_)); }
  ~FaultyConformance() override { close(); }

  /// The directory's engine, after the store that had it is closed.
  std::unique_ptr<Engine> make_engine_anew() {
    close();
    return make_engine();
  }

  FaultScript script_;
};

}  // namespace perdure::conformance
