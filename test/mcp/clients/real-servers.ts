import { createRequire } from 'node:module';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { COMPILED_ONCE } from '../../support/compiled-once.ts';
import { dialIn, type DialledIn } from '../../support/dial-in.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { solanaWallet } from '../../support/wallets.ts';

/** A gateway with three servers that nobody here wrote, run as commands by a proxy that it lets in by name. */
export interface RealServers {
  readonly spine: Spine;
  /** A directory with `note.txt` in it, which the file system server may read. */
  readonly directory: string;
  close(): Promise<void>;
}

const server = (name: string) =>
  join(
    dirname(createRequire(import.meta.url).resolve(`@modelcontextprotocol/server-${name}/package.json`)),
    'dist/index.js',
  );

export async function startRealServers(): Promise<RealServers> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-files-'));
  await writeFile(join(directory, 'note.txt'), 'a note\n');
  const block = (name: string, args: readonly string[], env = '') => `
[[tools]]
name = "real/${name}"
display_name = "Real: ${name}"
provider_name = "Real"
command = ${JSON.stringify(process.execPath)}
args = ${JSON.stringify([COMPILED_ONCE, server(name), ...args])}
${env}
[tools.pricing]
per_call = 0.001
`;
  const wallet = solanaWallet();
  const toml = `${UNHURRIED}[tunnel]\nproviders = ${JSON.stringify([wallet.providerId])}\n`;
  const spine = await startSpine({ toml });
  const services =
    block('everything', ['stdio']) +
    block('filesystem', [directory]) +
    block('memory', [], `env = { MEMORY_FILE_PATH = ${JSON.stringify(join(directory, 'memory.json'))} }`);
  let proxy: DialledIn;
  try {
    proxy = await dialIn({ router: spine.origin, services, wallet });
  } catch (error) {
    await spine.stop();
    throw error;
  }
  return {
    spine,
    directory,
    async close() {
      await proxy.close();
      await spine.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
