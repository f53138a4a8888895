// A disk that is full: work is refused with the reason, what frees space goes on, and all is well when there is room.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Daemon } from "./daemon.mjs";

const mayMount = process.getuid() === 0;

test("a full disk refuses events with 507, completes and reads all the same, and heals", { skip: !mayMount && "needs root" }, async (t) => {
  const disk = mkdtempSync(join(tmpdir(), "perdure-disk-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=48m", "tmpfs", disk]);
  t.after(() => {
    execFileSync("umount", [disk]);
    rmSync(disk, { recursive: true });
  });
  const daemon = await Daemon.start(null, { store: `lmdb:${join(disk, "store")}` });
  try {
    const batch = Array(50).fill({ worker: "w", value: "x".repeat(5000) });
    let stored = 0;
    for (;;) {
      const answer = await daemon.request("POST", "/v1/s/events", { body: batch });
      if (answer.status === 201) {
        stored += batch.length;
        continue;
      }
      assert.equal(answer.status, 507);
      assert.equal(answer.json.error.code, "store_full");
      assert.equal(answer.json.outcome, "none");
      break;
    }
    const claimed = await daemon.expect(200, "POST", "/v1/s/workers/w/claim", { max: 20 });
    assert.ok(claimed.items.length > 0);
    const complete = claimed.items.map(({ id, token }) => ({ id, token }));
    await daemon.expect(200, "POST", "/v1/s/workers/w/settle", { complete, atomic: true });
    const worker = (await daemon.get("/v1/s/workers/w")).json;
    assert.equal(worker.counts.total, stored - complete.length);
    execFileSync("mount", ["-o", "remount,size=256m", disk]);
    // The daemon finds out by itself; how soon is the store's affair.
    for (let tries = 0; ; ++tries) {
      const answer = await daemon.request("POST", "/v1/s/events", { body: batch });
      if (answer.status === 201) break;
      assert.equal(answer.status, 507);
      assert.ok(tries < 1000, "it has not healed");
    }
  } finally {
    await daemon.end();
  }
});
