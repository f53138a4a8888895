#pragma once

#include <cstddef>

namespace perdure::tuple {

/// The first byte of every element: docs/internals/tuple_format.md. Types sort in the order of these.
using Code = unsigned char;

inline constexpr Code kNullCode = 0x00;
inline constexpr Code kBytesCode = 0x01;
inline constexpr Code kTextCode = 0x02;
inline constexpr Code kTupleCode = 0x05;
inline constexpr Code kBigNegativeCode = 0x0b;
/// An integer of n bytes, n up to eight, has the code zero + n, or zero - n if it is negative.
inline constexpr Code kZeroCode = 0x14;
inline constexpr Code kBigPositiveCode = 0x1d;
inline constexpr Code kDoubleCode = 0x21;
inline constexpr Code kFalseCode = 0x26;
inline constexpr Code kTrueCode = 0x27;
inline constexpr Code kUuidCode = 0x30;
inline constexpr Code kStampCode = 0x33;

/// Follows a zero byte that belongs to a string, and a null inside of a nested tuple; no element starts with it.
inline constexpr char kEscape = '\xff';
/// Ends a string, and a nested tuple.
inline constexpr char kTerminator = '\0';

/// The longest magnitude, in bytes, of an integer whose length stands in its code.
inline constexpr std::size_t kSmallMagnitude = 8;

}  // namespace perdure::tuple
