import { closeSync, fstatSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import v8 from 'node:v8';

/** Functions that act beyond this process, which Node's permission model does not know and no provider needs. */
const OF_PROCESS = [
  'kill',
  '_kill',
  '_debugProcess',
  '_debugEnd',
  'setuid',
  'seteuid',
  'setgid',
  'setegid',
  'setgroups',
  'initgroups',
  'dlopen',
  'execve',
  'binding',
  '_linkedBinding',
  'loadEnvFile',
];

/**
 * Takes away what the permission model leaves, before a package is loaded: signals and priorities of other processes,
 * the debugger of others, other users, and flags of V8, some of which make it write files. These are walls of
 * JavaScript: they hold as long as nothing of the package runs before, and as Node keeps no second way to the same
 * function. test/providers/ai-sdk/reach.test.ts looks for what is missing here.
 */
export function shut(): void {
  closeFiles();
  for (const name of OF_PROCESS) replace(process, name, 'process');
  replace(os, 'setPriority', 'os');
  replace(v8, 'setFlagsFromString', 'v8');
  // Connects without the gateway. Storages and EventSource are not there (NODE_FLAGS).
  delete (globalThis as { WebSocket?: unknown }).WebSocket;
  syncBuiltinESMExports();
}

/** A process has these at most, unless the system allows more. */
const DESCRIPTORS = 1_024;

/**
 * Closes files that the process has from the one that started it. A thread there that opens a file by the C library,
 * while another one starts a process, leaves it to that process, and Node's permission model lets a package read it.
 */
function closeFiles(): void {
  for (let fd = 3; fd < DESCRIPTORS; fd++)
    try {
      const stat = fstatSync(fd);
      if (stat.isFile() || stat.isDirectory()) closeSync(fd);
    } catch {
      // No descriptor has this number.
    }
}

function replace(target: object, name: string, owner: string): void {
  if (!(name in target)) return;
  const value = () => {
    throw Object.assign(new Error(`a package may not call ${owner}.${name}`), { code: 'ERR_ACCESS_DENIED' });
  };
  Object.defineProperty(target, name, { value, writable: false, configurable: false, enumerable: true });
}
