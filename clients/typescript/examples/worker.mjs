// Works on the events of "mail" until Ctrl-C: node worker.mjs, then
//
//     perdure emit mail '{"to": "ann@example.org"}'
import { GiveUp, Perdure } from "perdure";

const stop = new AbortController();
for (const name of ["SIGINT", "SIGTERM"]) process.once(name, () => stop.abort());

console.log("waiting for mail");
await new Perdure().work(
  "mail",
  async ({ value, attempt }) => {
    if (!value?.to) throw new GiveUp("nobody to send it to");
    console.log(`to ${value.to}, attempt ${attempt}`);
    return { sent: new Date().toISOString() };
  },
  { concurrency: 20, lock: "30s", signal: stop.signal, onError: (error) => console.error(String(error)) },
);
console.log("stopped");
