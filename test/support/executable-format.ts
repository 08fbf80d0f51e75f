/** Reads what an executable file says about itself: container format and machine, from its first bytes. */

export interface ExecutableFormat {
  container: "ELF" | "Mach-O" | "PE";
  machine: "x64" | "arm64";
}

/** Throws for anything but a 64-bit ELF, Mach-O or PE file for x64 or arm64. */
export function readExecutableFormat(bytes: Buffer): ExecutableFormat {
  if (bytes.length < 64) throw new Error("the file is too short for an executable");
  if (bytes.readUInt32BE(0) === 0x7f454c46 && bytes[4] === 2) {
    return { container: "ELF", machine: machineOf({ 62: "x64", 183: "arm64" }, bytes.readUInt16LE(18)) };
  }
  if (bytes.readUInt32LE(0) === 0xfeedfacf) {
    const machines = { 16777223: "x64", 16777228: "arm64" } as const;
    return { container: "Mach-O", machine: machineOf(machines, bytes.readUInt32LE(4)) };
  }
  if (bytes.toString("latin1", 0, 2) === "MZ") {
    const header = bytes.readUInt32LE(60);
    if (bytes.toString("latin1", header, header + 4) !== "PE\0\0") throw new Error("MZ without a PE header");
    return { container: "PE", machine: machineOf({ 34404: "x64", 43620: "arm64" }, bytes.readUInt16LE(header + 4)) };
  }
  throw new Error(`no known executable begins with ${bytes.toString("hex", 0, 4)}`);
}

function machineOf(machines: Record<number, ExecutableFormat["machine"]>, code: number): ExecutableFormat["machine"] {
  const machine = machines[code];
  if (!machine) throw new Error(`unknown machine 0x${code.toString(16)}`);
  return machine;
}
