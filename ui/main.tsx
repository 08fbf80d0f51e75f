import { render } from "preact";
import { App } from "./app.tsx";
import { startPolling } from "./state/session.ts";
import { startStreams } from "./stream/stream-client.ts";

const root = document.getElementById("app");
if (!root) throw new Error("index.html has no #app");
startPolling();
void startStreams();
render(<App />, root);
