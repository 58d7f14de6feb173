import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** `<data>/gateway.json`: how the commands of this machine reach the gateway that uses this data directory. */
export interface GatewayFile {
  readonly base_url: string;
  readonly admin_key: string;
  readonly pid: number;
}

/** `<data>/dev.json`: what a client needs to use the development gateway. */
export interface DevFile {
  readonly base_url: string;
  readonly api_key: string;
  readonly admin_key: string;
}

const GATEWAY = 'gateway.json';
const DEV = 'dev.json';

export const writeGatewayFile = (dataDir: string, content: GatewayFile) => writeSecretFile(dataDir, GATEWAY, content);
export const writeDevFile = (dataDir: string, content: DevFile) => writeSecretFile(dataDir, DEV, content);

/** Removes the file unless another gateway has written its own in the meantime. */
export function removeGatewayFile(dataDir: string): void {
  if (readFields(dataDir, GATEWAY)?.['pid'] === process.pid) rmSync(join(dataDir, GATEWAY), { force: true });
}

/** The gateway that runs on this data directory; null when none was started or its process is gone. */
export function findGateway(dataDir: string): GatewayFile | null {
  const { base_url, admin_key, pid } = readFields(dataDir, GATEWAY) ?? {};
  if (typeof base_url !== 'string' || typeof admin_key !== 'string' || typeof pid !== 'number') return null;
  return isAlive(pid) ? { base_url, admin_key, pid } : null;
}

/** The development key of an earlier start; null when there is none. */
export function readDevKey(dataDir: string): string | null {
  const key = readFields(dataDir, DEV)?.['api_key'];
  return typeof key === 'string' ? key : null;
}

/** Written aside and renamed, so that a reader sees the old content or the new, never a part; readable by its owner alone from the first byte. */
function writeSecretFile(dataDir: string, name: string, content: object): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, name);
  const aside = `${path}.${process.pid}`;
  rmSync(aside, { force: true });
  writeFileSync(aside, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
  renameSync(aside, path);
}

function readFields(dataDir: string, name: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(readFileSync(join(dataDir, name), 'utf8'));
    return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Somebody else's process is alive all the same.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
