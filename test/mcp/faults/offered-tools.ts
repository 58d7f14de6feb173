import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { COMPILED_ONCE } from '../../support/compiled-once.ts';
import { toolToml } from '../calls/modern-post.ts';

/** A tool that a proxy runs, see test/support/stdio-mcp-server.ts, and what its processes wrote down. */
export interface Command {
  readonly toml: string;
  /** Lines that any of its processes got. */
  got(text: string): readonly string[];
  /** Processes that were started and still run. */
  running(): readonly number[];
}

export const SERVER_SCRIPT = fileURLToPath(new URL('../../support/stdio-mcp-server.ts', import.meta.url));

/** A `[[tools]]` block for a provider's file with a command. Ends with the test. */
export function commandTool(name: string, more = '', script = SERVER_SCRIPT): Command {
  const dir = mkdtempSync(join(tmpdir(), 'tollgate-faults-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const journal = join(dir, 'journal');
  const lines = () => {
    try {
      return readFileSync(journal, 'utf8').split('\n');
    } catch {
      // Nothing was started yet.
      return [];
    }
  };
  const command = `command = ${JSON.stringify(process.execPath)}\nargs = ${JSON.stringify([COMPILED_ONCE, script, `journal=${journal}`])}\n${more}`;
  return {
    toml: toolToml({ name, url: 'http://replaced', provider: 'Tunnel' }).replace(
      'endpoint = "http://replaced"',
      command,
    ),
    got: (text) => lines().filter((line) => line.startsWith('line ') && line.includes(text)),
    running: () =>
      lines().flatMap((line) =>
        line.startsWith('pid ') && isRunning(Number(line.slice(4))) ? [Number(line.slice(4))] : [],
      ),
  };
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
