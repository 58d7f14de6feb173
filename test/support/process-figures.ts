import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

// What Linux tells of processes and sockets.

/** The most that was ever resident of a process, in bytes. */
export function residentPeak(pid: number): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024;
}

/** Sockets that a process has open. */
export function socketsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith('socket:');
    } catch {
      // It was closed while we looked.
      return false;
    }
  }).length;
}

/** Bytes that a process has read so far, from files and sockets. */
export function bytesRead(pid: number): number {
  return Number(/rchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))![1]);
}

/**
 * Bytes that the kernel holds for the connections of a loopback port, sent and not yet read. Both ends count, so
 * take it when nothing moves.
 */
export function bytesInKernel(port: number): number {
  const hex = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  let bytes = 0;
  for (const line of readFileSync('/proc/net/tcp', 'latin1').split('\n').slice(1)) {
    const [, local, remote, state, queues] = line.trim().split(/\s+/);
    // What a listener has queued are connections.
    if (queues === undefined || state === LISTENING || !(local!.endsWith(hex) || remote!.endsWith(hex))) continue;
    for (const queue of queues.split(':')) bytes += Number.parseInt(queue, 16);
  }
  return bytes;
}
const LISTENING = '0A';
