// Graphile Worker in its defaults and in its fastest documented configuration: bench.mjs URL MILLISECONDS
import {createRequire} from "node:module";
import {performance} from "node:perf_hooks";

const require = createRequire(import.meta.url);
const {Logger, makeWorkerUtils, run} = require("graphile-worker");
const {Pool} = require("pg");

const [url, milliseconds] = process.argv.slice(2);
const duration = Number(milliseconds), drained = 20_000, callers = 64;
const logger = new Logger(() => () => {});
const configurations = {
  defaults: {},
  // Jobs are fetched 500 at once, and their completions written together.
  fast: {localQueue: {size: 500, refetchDelay: {durationMs: 10}}, completeJobBatchDelay: 0, failJobBatchDelay: 0},
};

const pool = new Pool({connectionString: url, max: 64});
const utils = await makeWorkerUtils({pgPool: pool, logger});
await utils.migrate();

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const payload = (id) => ({id, pad: "x".repeat(180)});
const left = async () =>
    Number((await pool.query("SELECT count(*) AS n FROM graphile_worker._private_jobs")).rows[0].n);
const print = (name, operations, began) => console.log(JSON.stringify(
    {name: `graphile/${name}`, operations, per_s: Math.round(operations / ((performance.now() - began) / 1000))}));

/// Adds by so many callers until the time is over; answers how many jobs there are then.
async function add(count, atOnce) {
  const until = performance.now() + duration;
  let jobs = 0;
  await Promise.all(Array.from({length: count}, async () => {
    while (performance.now() < until) {
      const payloads = Array.from({length: atOnce}, () => payload(jobs++));
      if (atOnce === 1) await utils.addJob("job", payloads[0]);
      else await utils.addJobs(payloads.map((each) => ({identifier: "job", payload: each})));
    }
  }));
  return jobs;
}

async function work(worker) {
  let done = 0;
  const runner = await run({
    pgPool: pool, logger, concurrency: 24, noHandleSignals: true, pollInterval: 2000, preset: {worker},
    taskList: {job: () => void ++done},
  });
  return {done: () => done, stop: () => runner.stop()};
}

async function finished(worker, jobs) {
  while (worker.done() < jobs) await pause(2);
  while (await left() > 0) await pause(2);
}

for (const [name, configuration] of Object.entries(configurations)) {
  const clear = () => pool.query("TRUNCATE graphile_worker._private_jobs");
  let began = performance.now();
  print(`emit/64 ${name}`, await add(callers, 1), began);
  await clear();
  for (const bulkCallers of [1, 4, 16]) {
    began = performance.now();
    print(`emit_many/100x${bulkCallers} ${name}`, await add(bulkCallers, 100), began);
    await clear();
  }
  for (let i = 0; i < drained; i += 500)
    await utils.addJobs(Array.from({length: 500}, (_, k) => ({identifier: "job", payload: payload(i + k)})));
  began = performance.now();
  let worker = await work(configuration);
  await finished(worker, drained);
  print(`drain/20k ${name}`, drained, began);
  await worker.stop();
  worker = await work(configuration);
  began = performance.now();
  const jobs = await add(callers, 1);
  await finished(worker, jobs);
  print(`both ${name}`, jobs, began);
  await worker.stop();
}
await utils.release();
await pool.end();
