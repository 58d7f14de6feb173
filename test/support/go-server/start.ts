import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { findGo } from '../find-go.ts';
import { createKeeper } from '../server-process.ts';
import { startAsGo } from './as-go.ts';

/** The requests that the server has executed so far. */
export interface Obeyed {
  readonly chat: readonly {
    readonly model: string;
    readonly max_tokens: number;
    readonly n: number;
    readonly stream: boolean;
  }[];
  /** Names of the executed tools. */
  readonly tools: readonly string[];
  readonly sends: readonly { readonly taskId: string; readonly contextId: string; readonly messageId: string }[];
}

/** A provider of all three protocols that parses JSON like Go's `encoding/json`. */
export interface GoServer {
  /** The origin. It serves `/v1/chat/completions`, `/mcp` and `/agent`. */
  readonly url: string;
  /** The version of Go. null if this machine has no Go. Then the server follows the rules in `as-go.ts`. */
  readonly version: string | null;
  obeyed(): Promise<Obeyed>;
  close(): Promise<void>;
}

const SOURCE = resolve(import.meta.dirname, 'main.go');
const BUILD_MS = 280_000;

/**
 * Builds and starts the program in `main.go`. If Go isn't available, prints this and starts the equivalent in
 * TypeScript.
 */
export async function startGoServer(): Promise<GoServer> {
  const go = findGo(say);
  if (typeof go === 'string') {
    say(`no Go to test with, its rules are tested instead; to have both: ${go}`);
    return withObeyed(await startAsGo(), null);
  }
  const home = mkdtempSync(join(tmpdir(), 'tollgate-go-'));
  const keeper = createKeeper([home]);
  try {
    const file = join(home, 'server');
    const env = {
      ...go.env,
      HOME: home,
      GOCACHE: join(home, 'cache'),
      GOPATH: join(home, 'path'),
      GO111MODULE: 'off',
      GOFLAGS: '',
      CGO_ENABLED: '0',
    };
    const built = spawnSync(go.file, ['build', '-o', file, SOURCE], {
      cwd: home,
      env,
      encoding: 'utf8',
      timeout: BUILD_MS,
    });
    if (built.status !== 0) throw new Error(`go build failed: ${built.stderr || String(built.error)}`);
    const server = keeper.start({ file, args: [], cwd: home });
    await server.wrote('\n');
    return withObeyed({ url: server.output().trim(), close: () => keeper.close() }, go.version);
  } catch (error) {
    await keeper.close();
    throw error;
  }
}

const withObeyed = (
  { url, close }: { readonly url: string; close(): Promise<void> },
  version: string | null,
): GoServer => ({
  url,
  version,
  obeyed: async () => (await (await fetch(`${url}/obeyed`)).json()) as Obeyed,
  close,
});

function say(line: string): void {
  process.stderr.write(`  ${line}\n`);
}
