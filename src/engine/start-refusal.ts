/** Why a server (or `init`) will not start: a person reads the message, which names what to change and where. */
export class StartRefusal extends Error {
  override readonly name = "StartRefusal";
}
