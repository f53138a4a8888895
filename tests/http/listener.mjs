// A client of /v1/{space}/stream
import assert from "node:assert/strict";
import http from "node:http";

import {patience, until, within} from "./daemon.mjs";
import {resolve as schema, validate} from "./schema.mjs";

/// A client that listens: `changes` grows with what comes.
export class Listener {
  changes = [];
  gaps = 0;
  comments = 0;

  static open(t, at, path, headers = {}) {
    const listener = new Listener();
    const opened = new Promise((resolve, reject) => {
      listener.request = http.get({host: "127.0.0.1", port: at.port, path, headers, agent: false}, (response) => {
        listener.status = response.statusCode;
        listener.type = response.headers["content-type"];
        response.on("data", (piece) => listener.#take(piece.toString()));
        response.on("end", () => (listener.ended = true));
        response.on("error", () => (listener.ended = true));
        if (response.statusCode !== 200) resolve(listener);
        response.once("data", () => resolve(listener));
      });
      listener.request.on("error", reject);
    });
    t.after(() => listener.close());
    return within(patience, "opening the stream", opened);
  }

  #rest = "";
  #take(text) {
    this.#rest += text;
    for (let end; (end = this.#rest.indexOf("\n\n")) >= 0; this.#rest = this.#rest.slice(end + 2)) {
      const lines = this.#rest.slice(0, end).split("\n");
      const field = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      if (lines[0].startsWith(":"))
        ++this.comments;
      else if (field("event") === "gap")
        ++this.gaps;
      else {
        const change = {cursor: field("id"), event: field("event"), ...JSON.parse(field("data"))};
        assert.deepEqual(validate(schema("#/components/schemas/Change"), JSON.parse(field("data"))), []);
        assert.equal(change.event, change.type);
        this.changes.push(change);
      }
    }
  }

  async see(count) {
    await until(
        `${count} changes; there are ${JSON.stringify(this.changes.map((each) => `${each.type} ${each.state}`))}`,
        () => this.changes.length >= count, 10_000);
    return this.changes;
  }
  states(type) { return this.changes.filter((each) => each.type === type).map((each) => each.state); }
  close() { this.request.destroy(); }
}
