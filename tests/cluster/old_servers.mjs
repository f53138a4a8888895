// Servers that are none: they say of which version they are, and little else
import http2 from "node:http2";
import net from "node:net";

/// Listens on the loopback until the test is over; returns the port.
async function listening(t, server) {
  const sockets = new Set();
  server.on("connection", (socket) => sockets.add(socket.on("error", () => {})));
  t.after(() => {
    sockets.forEach((each) => each.destroy());
    server.close();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server.address().port;
}

/// A message of PostgreSQL's protocol: a type, the length of the rest with itself, and the rest.
function message(type, ...parts) {
  const body =
      Buffer.concat(parts.map((each) => typeof each === "string" ? Buffer.from(`${each}\0`) : Buffer.from(each)));
  const head = Buffer.alloc(5, type);
  head.writeInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}

/// Lets everybody in as a PostgreSQL of that version would, says that it takes writes, and hangs up when it is asked
/// for anything else.
export function oldPostgres(t, version) {
  return listening(t, net.createServer((socket) => {
    let typed = false;
    socket.on("data", (bytes) => {
      if (!typed) {
        const code = bytes.readInt32BE(4);
        // They first ask for encryption.
        if (code === 80877103 || code === 80877104) return socket.write("N");
        typed = true;
        socket.write(Buffer.concat([
          message("R", [0, 0, 0, 0]), message("S", "server_version", version), message("S", "client_encoding", "UTF8"),
          message("Z", [0x49])
        ]));
      } else if (bytes.toString("latin1", 0, 1) === "Q") {
        const column = [
          0, 1, ...Buffer.from("transaction_read_only\0"), ...Array(6).fill(0), 0, 0, 0, 25, 255, 255, 255, 255, 255,
          255, 0, 0
        ];
        socket.write(Buffer.concat([
          message("T", column), message("D", [0, 1, 0, 0, 0, 3, ...Buffer.from("off")]), message("C", "SHOW"),
          message("Z", [0x49])
        ]));
      } else {
        socket.destroy();
      }
    });
  }));
}

/// Says its version as an etcd would, and knows nothing else.
export function oldEtcd(t, version) {
  const server = http2.createServer();
  server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    const head = {":status": 200, "content-type": "application/grpc"};
    if (headers[":path"] !== "/etcdserverpb.Maintenance/Status")
      return stream.respond({...head, "grpc-status": "12", "grpc-message": "unknown method"}, {endStream: true});
    // Field 2 is the version.
    const status = Buffer.from([0x12, version.length, ...Buffer.from(version)]);
    stream.respond(head, {waitForTrailers: true});
    stream.on("wantTrailers", () => stream.sendTrailers({"grpc-status": "0"}));
    stream.end(Buffer.from([0, 0, 0, 0, status.length, ...status]));
  });
  return listening(t, server);
}
