// Histories of lists that clients read and append to, and the program that judges them
import assert from "node:assert/strict";
import {execFileSync} from "node:child_process";
import {writeFileSync} from "node:fs";

/// What the checker says to a history: {ok, said}.
function judge(lines, directory) {
  const file = `${directory}/history`;
  writeFileSync(file, lines.join("\n") + "\n");
  try {
    return {ok: true, said: execFileSync(process.env.PERDURE_CHECK_HISTORY, [file], {encoding: "utf8"}).trim()};
  } catch (error) {
    if (error.status !== 1) throw error;
    return {ok: false, said: error.stdout.trim()};
  }
}

/// The history passes, and would not if one update had been lost.
export function checkHistory(t, lines, directory) {
  const {ok, said} = judge(lines, directory);
  t.diagnostic(`list-append: ${said.split("\n")[0]}`);
  assert.ok(ok, said);
  // A transaction that has appended to a list is said not to have seen the value before its own.
  const appended = /^(ok .* r (\d+) \d+,\d+(?:,\d+)*),\d+((?: .*)? a \2 \d+.*)$/;
  const at = lines.findLastIndex((line) => appended.test(line));
  assert.ok(at >= 0, "a transaction on a list of three values");
  const doctored = [...lines];
  doctored[at] = lines[at].replace(appended, "$1$3");
  const verdict = judge(doctored, directory);
  assert.ok(!verdict.ok, `a history with a lost update passes: ${doctored[at]}`);
  t.diagnostic(`list-append, with one value taken from one read: ${verdict.said.split("\n")[0]}`);
}
