/**
 * Everything that passes this machine's interfaces on some ports, as an eavesdropper on the LAN has it: a packet socket
 * (Linux, CAP_NET_RAW), read through libc, since the runtime has none of its own.
 */
import { dlopen, FFIType, ptr } from "bun:ffi";

const AF_PACKET = 17;
const SOCK_DGRAM = 2;
const SOCK_NONBLOCK = 0x800;
const ETH_P_IP = 0x0800;
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const SO_RCVBUFFORCE = 33;
const RECEIVE_BUFFER_BYTES = 64 << 20;
const PACKET_BYTES = 128 << 10;
const POLL_MS = 5;
const UDP = 17;
const TCP = 6;

export interface PacketCapture extends Disposable {
  /** What each TCP connection carried in each direction, put together in its order, and every datagram. */
  streams(): Buffer[];
  datagrams(): Buffer[];
}

function libc() {
  return dlopen("libc.so.6", {
    socket: { args: [FFIType.i32, FFIType.i32, FFIType.i32], returns: FFIType.i32 },
    setsockopt: { args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr, FFIType.u32], returns: FFIType.i32 },
    recv: { args: [FFIType.i32, FFIType.ptr, FFIType.u64, FFIType.i32], returns: FFIType.i64 },
    close: { args: [FFIType.i32], returns: FFIType.i32 },
  }).symbols;
}

const networkOrder = (value: number): number => ((value & 0xff) << 8) | (value >> 8);

/** Whether this process may listen to all packets. */
export function canCapturePackets(): boolean {
  if (process.platform !== "linux") return false;
  const c = libc();
  const fd = c.socket(AF_PACKET, SOCK_DGRAM, networkOrder(ETH_P_IP));
  if (fd < 0) return false;
  c.close(fd);
  return true;
}

/** Captures IPv4 packets to and from these TCP and UDP ports, on every interface, until disposed of. */
export function capturePackets(ports: readonly number[]): PacketCapture {
  const c = libc();
  const fd = c.socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK, networkOrder(ETH_P_IP));
  if (fd < 0) throw new Error("no packet socket");
  const size = new Int32Array([RECEIVE_BUFFER_BYTES]);
  c.setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, ptr(size), 4);
  const filter = portFilter(ports);
  const program = new DataView(new ArrayBuffer(16)); // struct sock_fprog
  program.setUint16(0, filter.length / 8, true);
  program.setBigUint64(8, BigInt(ptr(filter)), true);
  if (c.setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, ptr(new Uint8Array(program.buffer)), 16) !== 0)
    throw new Error("the packet filter was refused");

  const packet = new Uint8Array(PACKET_BYTES);
  const segments = new Map<string, Map<number, Buffer>>();
  const datagrams: Buffer[] = [];
  const drain = (): void => {
    for (;;) {
      const length = Number(c.recv(fd, ptr(packet), packet.length, 0));
      if (length <= 0) return;
      takePacket(Buffer.from(packet.subarray(0, length)), segments, datagrams);
    }
  };
  const timer = setInterval(drain, POLL_MS);
  return {
    streams: () => {
      drain();
      return [...segments.values()].map(inOrder);
    },
    datagrams: () => {
      drain();
      return datagrams;
    },
    [Symbol.dispose]: () => {
      clearInterval(timer);
      c.close(fd);
    },
  };
}

/** Classic BPF over the IP header: TCP or UDP, and one of the ports on either side. */
function portFilter(ports: readonly number[]): Uint8Array {
  const load = (code: number, at: number) => ({ code, jt: 0, jf: 0, k: at });
  const equal = (k: number, jt: number, jf: number) => ({ code: 0x15, jt, jf, k });
  const toAccept = (left: number) => left * 2 + 2; // over the other comparisons, the second load and the refusal
  const program = [
    load(0x30, 9), // the protocol
    equal(TCP, 1, 0),
    equal(UDP, 0, ports.length * 2 + 3),
    load(0xb1, 0), // X = length of the header
    load(0x48, 0), // source port
    ...ports.map((port, index) => equal(port, toAccept(ports.length) - index - 1, 0)),
    load(0x48, 2), // destination port
    ...ports.map((port, index) => equal(port, ports.length - index, 0)),
    { code: 0x06, jt: 0, jf: 0, k: 0 },
    { code: 0x06, jt: 0, jf: 0, k: 0x40000 },
  ];
  const bytes = new DataView(new ArrayBuffer(program.length * 8));
  program.forEach(({ code, jt, jf, k }, index) => {
    bytes.setUint16(index * 8, code, true);
    bytes.setUint8(index * 8 + 2, jt);
    bytes.setUint8(index * 8 + 3, jf);
    bytes.setUint32(index * 8 + 4, k, true);
  });
  return new Uint8Array(bytes.buffer);
}

function takePacket(packet: Buffer, segments: Map<string, Map<number, Buffer>>, datagrams: Buffer[]): void {
  const header = (packet[0]! & 0x0f) * 4;
  const rest = packet.subarray(header, packet.readUInt16BE(2) || packet.length); // a length of 0: offloaded
  if (packet[9] === UDP) {
    datagrams.push(rest.subarray(8));
    return;
  }
  const payload = rest.subarray((rest[12]! >> 4) * 4);
  if (payload.length === 0) return;
  const flow = `${packet.subarray(12, 20).toString("hex")} ${rest.subarray(0, 4).toString("hex")}`;
  const known = segments.get(flow) ?? new Map<number, Buffer>();
  segments.set(flow, known);
  // Seen when it leaves and again when it arrives; a retransmission may be longer.
  const seq = rest.readUInt32BE(4);
  if ((known.get(seq)?.length ?? 0) < payload.length) known.set(seq, payload);
}

/** The segments of one direction; sequence numbers may wrap once. */
function inOrder(segments: Map<number, Buffer>): Buffer {
  const first = segments.keys().next().value ?? 0;
  const place = (seq: number): number => (seq - first) | 0;
  return Buffer.concat([...segments].sort(([a], [b]) => place(a) - place(b)).map(([, payload]) => payload));
}
