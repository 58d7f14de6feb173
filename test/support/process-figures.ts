import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

// Figures of processes and sockets, from Linux's /proc.

/** The peak resident memory of a process, in bytes. */
export function residentPeak(pid: number): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024;
}

/** Number of open sockets of a process. */
export function socketsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith('socket:');
    } catch {
      // It was closed in the meantime.
      return false;
    }
  }).length;
}

/** Bytes that a process has read so far, from files and sockets. */
export function bytesRead(pid: number): number {
  return Number(/rchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))![1]);
}

/**
 * Bytes that the kernel buffers for the connections of a loopback port. Both ends count. The result is exact only while
 * nothing is sent.
 */
export function bytesInKernel(port: number): number {
  const hex = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  let bytes = 0;
  for (const line of readFileSync('/proc/net/tcp', 'latin1').split('\n').slice(1)) {
    const [, local, remote, state, queues] = line.trim().split(/\s+/);
    // In a listening socket the queue contains connections, not bytes.
    if (queues === undefined || state === LISTENING || !(local!.endsWith(hex) || remote!.endsWith(hex))) continue;
    for (const queue of queues.split(':')) bytes += Number.parseInt(queue, 16);
  }
  return bytes;
}
const LISTENING = '0A';
