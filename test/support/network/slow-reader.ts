/**
 * Reads an event stream and stops reading on demand. Arguments: the port on loopback, the path. Says `ready` once the
 * stream is; a line on standard input says `pause` or `resume`; every frame is then said as it comes, as `{event, data}`.
 */
import { connect } from "node:net";

const [port, path] = process.argv.slice(2);
const socket = connect(Number(port), "127.0.0.1");
let text = "";
let ready = false;
socket.on("data", (chunk) => {
  text += chunk.toString("utf8");
  for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
    const [, event, data] = /event: (\w+)\ndata: (.*)$/.exec(text.slice(0, end)) ?? [];
    text = text.slice(end + 2);
    if (event === undefined) continue; // a keepalive, or the head of the response
    if (ready) console.log(JSON.stringify({ event, data: JSON.parse(data!) as unknown }));
    else console.log("ready");
    ready = true;
  }
});
socket.on("error", (error) => console.log(JSON.stringify({ event: "failed", data: String(error) })));
socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
for await (const line of console) {
  if (line === "pause") socket.pause();
  else socket.resume();
  console.log(JSON.stringify({ event: line, data: null }));
}
process.exit(0);
