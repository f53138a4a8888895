// Is compiled by test.sh, and not run: what a user in TypeScript can say, and what the compiler must refuse.
import { behaviour, Perdure, PerdureError, Refused, verifyWebhook } from "perdure";
import type { Change, ClaimedEvent, DebounceRun } from "perdure";

interface Mail {
  to: string;
}
interface Account {
  balance: number;
}
type Transfer = { to: string; amount: number };

const perdure = new Perdure({ url: "http://127.0.0.1:7420", space: "shop" });

export async function emits(): Promise<string> {
  const { id, duplicate } = await perdure.emit<Mail>("mail", { to: "ann" }, { delay: "5s", unique: { key: "k" } });
  // @ts-expect-error: a misspelt option.
  await perdure.emit("mail", 1, { dealy: "5s" });
  // @ts-expect-error: not a Mail.
  await perdure.emit<Mail>("mail", { too: "ann" });
  return duplicate ? "" : id;
}

export async function works(signal: AbortSignal): Promise<void> {
  const options = { concurrency: 2, signal };
  await perdure.work<Mail, number>("mail", ({ value }, job) => (job.signal.aborted ? 0 : value.to.length), options);
  // @ts-expect-error: the result is a number.
  await perdure.work<Mail, number>("mail", ({ value }) => value.to);
  const claimed: ClaimedEvent<DebounceRun<Mail>>[] = await perdure.claim<DebounceRun<Mail>>("build", { wait: 5 });
  for (const each of claimed) await perdure.complete(each, each.value.payload?.to);
}

export const account = behaviour<Account, Transfer, { deposit: number }, boolean>("account", {
  init: () => ({ balance: 0 }),
  call: ({ message, state }) => {
    if (message.amount < 0) throw new Refused("no");
    const cast = [{ kind: "account", id: message.to, message: { deposit: message.amount } }];
    return { state: { balance: state.balance - message.amount }, reply: true, cast };
  },
  // @ts-expect-error: the state is an Account.
  cast: async ({ message, state }) => ({ state: state.balance + message.deposit }),
});

export async function reads(): Promise<void> {
  const state: Account = await perdure.actors.state<Account>("account", "ada");
  const stored = await perdure.keys.get<Account>("k");
  // @ts-expect-error: there may be none.
  void stored.value;
  await perdure.keys.set("k", state, { version: stored?.version ?? null });
  for await (const change of perdure.stream({ worker: "mail" })) show(change);
}
function show(change: Change): string {
  return `${change.cursor} ${change.type} ${change.state}`;
}

export function handles(error: unknown): string | undefined {
  return error instanceof PerdureError && error.outcome === "unknown" ? error.code : undefined;
}
export const pushed: Mail = verifyWebhook<Mail>({ secret: "s", headers: {}, body: "" }).value;
