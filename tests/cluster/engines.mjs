// The engines that keep a store on servers across a network, each with a server of the test's own.
import {Etcd, noEtcd, noPostgres, Postgres} from "./servers.mjs";

export const engines = [
  {
    name: "postgres",
    skip: noPostgres,
    start: async (t) => {
      const server = await Postgres.start(t);
      return {
        url: server.url(),
        lose: () => server.crash(),
        bringBack: () => server.start(),
        /// It is there, and does not answer.
        freeze: () => server.freeze(),
        thaw: () => server.thaw(),
      };
    },
  },
  {
    name: "etcd",
    skip: noEtcd,
    start: async (t) => {
      const cluster = await Etcd.start(t);
      return {
        url: cluster.url(),
        lose: () => cluster.kill(0),
        bringBack: () => cluster.start(0),
        freeze: () => cluster.signal(0, "SIGSTOP"),
        thaw: () => cluster.signal(0, "SIGCONT"),
      };
    },
  },
];
