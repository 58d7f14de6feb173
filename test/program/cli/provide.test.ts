import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createWallet } from '../../../src/providers/proxy/wallet/wallet.ts';
import { writeKeypairFile } from '../../../src/providers/proxy/wallet/load-wallet.ts';
import { startProvider, type TestProvider } from '../../support/provider.ts';
import { createKeeper, type Keeper, type ServerProcess } from '../../support/server-process.ts';
import { startTunnelRouter, type TunnelRouter } from '../../support/tunnel-router.ts';
import { LAUNCHER, makePlace, type Place } from './tollgate.ts';

const STDIO_SERVER = join(import.meta.dirname, '../../support/stdio-mcp-server.ts');

let place: Place;
let router: TunnelRouter;
let provider: TestProvider;
let providerId: string;
const keepers: Keeper[] = [];
beforeEach(async () => {
  place = await makePlace();
  router = await startTunnelRouter();
  provider = await startProvider();
  const { wallet, fileText } = await createWallet('solana');
  providerId = wallet.providerId;
  await writeKeypairFile(join(place.dir, 'provider.json'), fileText);
});
afterEach(async () => {
  for (const keeper of keepers.splice(0)) await keeper.close();
  await Promise.all([router.stop(), provider.stop()]);
  await place.clear();
});

const env = { UPSTREAM: 'upstream-key-canary', TOOL: 'tool-env-canary' };

/** Writes `provider.toml`. */
async function file(changes: { readonly price?: string; readonly more?: string } = {}): Promise<string> {
  const text =
    `[router]\nurl = "${router.url}"\n[router.siwx]\nchain_id = "solana:mainnet"\nkeypair_file = "provider.json"\n` +
    `[[models]]\nname = "mine/one"\ndisplay_name = "Mine: One"\nprovider_name = "Mine"\n[models.pricing]\nprompt = ${changes.price ?? '1'}\ncompletion = 2\n` +
    `[models.params]\nmodel = "test/model"\napi_base = "${provider.url}"\napi_key = "std::env::UPSTREAM"\n${changes.more ?? ''}`;
  await writeFile(join(place.dir, 'provider.toml'), text);
  return 'provider.toml';
}

function provide(args: readonly string[], more: NodeJS.ProcessEnv = {}): ServerProcess {
  const keeper = createKeeper([]);
  keepers.push(keeper);
  return keeper.start({
    file: process.execPath,
    args: [LAUNCHER, 'provide', ...args],
    cwd: place.dir,
    env: { PATH: process.env['PATH'], HOME: place.dir, ...env, ...more },
  });
}

const lines = (child: ServerProcess) =>
  child
    .output()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('tollgate provide', () => {
  it('connects, says what it offers, serves, and stops at SIGTERM', async () => {
    const child = provide(['--config', await file()]);
    const end = await router.next();
    await end.accept(providerId);
    await child.wrote('ready: calls can come');
    const reply = await end.call(
      { ':path': '/model/mine%2Fone/chat/completions' },
      JSON.stringify({ model: 'test/model', messages: [{ role: 'user', content: 'hello' }] }),
    );
    expect(reply.status).toBe(200);
    expect(provider.log[0]!.headers.authorization).toBe(`Bearer ${env.UPSTREAM}`);
    child.signal('SIGTERM');
    await child.exited;
    expect(child.exitCode).toBe(0);
    expect(lines(child).map(({ msg }) => msg)).toEqual([
      'connected to the router',
      'registered',
      'ready: calls can come',
      'stopping: running calls may finish',
    ]);
    expect(child.output()).not.toContain('canary');
  });

  it('takes the file from CONFIG_FILE_PATH, and more of the log when asked', async () => {
    const child = provide(['--log-level', 'debug'], {
      CONFIG_FILE_PATH: await file(),
      TOLLGATE_CONFIG: 'nowhere.toml',
    });
    await (await router.next()).accept(providerId);
    await child.wrote('ready: calls can come');
    expect(lines(child)[0]).toMatchObject({ level: 'debug', msg: 'dialling the router' });
  });

  it('takes the file from TOLLGATE_CONFIG where nothing else names one', async () => {
    const child = provide([], { TOLLGATE_CONFIG: await file() });
    await (await router.next()).accept(providerId);
    await child.wrote('ready: calls can come');
  });

  it('ends a running call at the second signal', async () => {
    provider.hold(new Promise(() => {}));
    const child = provide(['--config', await file()]);
    const end = await router.next();
    await end.accept(providerId);
    await child.wrote('ready: calls can come');
    end.open(
      { ':path': '/model/mine%2Fone/chat/completions' },
      JSON.stringify({ model: 'test/model', messages: [{ role: 'user', content: 'hello' }] }),
    );
    while (provider.log.length === 0) await end.call({ ':path': '/model/none' });
    child.signal('SIGINT');
    await child.wrote('stopping');
    // What follows at once counts as the same Ctrl-C, which comes by several ways.
    const again = setInterval(() => child.signal('SIGINT'), 100);
    await child.exited;
    clearInterval(again);
    expect(child.exitCode).toBe(130);
  });

  it('ends with a code of its own where another took over, where it is not allowed, and where it is refused', async () => {
    const replaced = provide(['--config', await file()]);
    const end = await router.next();
    await end.accept(providerId);
    end.say({ type: 'replaced' });
    await replaced.exited;
    expect(replaced.exitCode).toBe(3);

    const refused = provide(['--config', 'provider.toml']);
    const second = await router.next();
    second.say({ type: 'welcome', provider: providerId, account: 'a', challenge: 'c', version: '1' });
    second.say({ type: 'refused', message: 'no', problems: [] });
    await refused.exited;
    expect(refused.exitCode).toBe(1);

    await router.stop();
    router = await startTunnelRouter({ reject: () => ({ status: 403, body: '{}' }) });
    const forbidden = provide(['--config', await file()]);
    await forbidden.exited;
    expect(forbidden.exitCode).toBe(2);
  });

  it('wants a file, and one that is right', async () => {
    expect(await place.run(['provide'])).toMatchObject({
      code: 2,
      output: expect.stringContaining('CONFIG_FILE_PATH'),
    });
    expect(await place.run(['provide', '--config', 'nowhere.toml'])).toMatchObject({
      code: 1,
      output: expect.stringContaining('nowhere.toml'),
    });
    expect(await place.run(['provide', '--log-level', 'loud'])).toMatchObject({ code: 2 });
  });

  it('names its exit codes in its help', async () => {
    const { output } = await place.run(['provide', '--help']);
    for (const code of [0, 1, 2, 3]) expect(output).toMatch(new RegExp(`^ {2}${code} {3}\\w`, 'm'));
  });
});

describe('a reload of tollgate provide', () => {
  const started = async () => {
    const child = provide(['--config', await file()]);
    const end = await router.next();
    await end.accept(providerId);
    await child.wrote('ready: calls can come');
    const answered = async () => {
      await end.heard();
      end.say({ type: 'registered', revision: 2, services: ['mine/one'] });
    };
    return { child, end, answered };
  };
  const reload = () => place.run(['provide', '--config', 'provider.toml', '--reload']);
  const more = `[[models]]\nname = "mine/two"\n[models.pricing]\nprompt = 3\ncompletion = 4\n[models.params]\nmodel = "m"\napi_base = "http://127.0.0.1:9"\n`;

  it('at --reload prints what changed, and at SIGHUP logs it, over the connection that is there', async () => {
    const { child, answered } = await started();
    await file({ price: '1.5', more });
    const [first] = await Promise.all([reload(), answered()]);
    expect(first).toMatchObject({
      code: 0,
      output: '~ model mine/one prompt 1 -> 1.5\n+ model mine/two prompt 3, completion 4\n',
    });
    expect(await reload()).toMatchObject({ code: 0, output: 'No service has changed.\n' });

    await file({ price: '1.2' });
    child.signal('SIGHUP');
    await answered();
    await child.wrote('~ model mine/one prompt 1.5 -> 1.2');
    const line = lines(child).find(
      ({ msg, changes }) => msg === 'the file was reloaded' && String(changes).includes('1.2'),
    );
    expect(line!['changes']).toEqual(['~ model mine/one prompt 1.5 -> 1.2', '- model mine/two']);
    expect(router.dials).toHaveLength(1);
    child.signal('SIGTERM');
    await child.exited;
    expect(child.exitCode).toBe(0);
    expect(child.output()).not.toContain('canary');
  });

  it('says at --reload and in the log that a raised price has a notice', async () => {
    const { child, end } = await started();
    await file({ price: '3' });
    const answered = async () => {
      await end.heard();
      const raised = [{ service: 'mine/one', until: '2026-11-27T10:10:00.000Z' }];
      end.say({ type: 'registered', revision: 2, services: ['mine/one'], raised });
    };
    const [{ code, output }] = await Promise.all([reload(), answered()]);
    expect([code, output]).toEqual([
      0,
      '~ model mine/one prompt 1 -> 3\n! mine/one: its price has more than doubled, so until 2026-11-27T10:10:00.000Z calls need a max_cost, and others get 422\n',
    ]);
    await child.wrote('its price has more than doubled');
    child.signal('SIGTERM');
    await child.exited;
  });

  it('refuses a file with problems, with its lines, and names what needs a restart', async () => {
    const { child, end } = await started();
    await file({ price: '-1' });
    expect(await reload()).toMatchObject({
      code: 1,
      output: expect.stringMatching(/old file stays in use[\s\S]*provider\.toml:\d+ +models\[0\]\.pricing\.prompt/),
    });
    child.signal('SIGHUP');
    await child.wrote('the file was not reloaded: the old one stays in use');
    const call = { ':path': '/model/mine%2Fone/chat/completions' };
    const body = JSON.stringify({ model: 'test/model', messages: [{ role: 'user', content: 'hello' }] });
    expect((await end.call(call, body)).status).toBe(200);

    const { fileText } = await createWallet('solana');
    await writeKeypairFile(join(place.dir, 'other.json'), fileText);
    const text = await readFile(join(place.dir, await file()), 'utf8');
    await writeFile(
      join(place.dir, 'provider.toml'),
      text.replace(router.url, 'http://127.0.0.1:9').replace('provider.json', 'other.json'),
    );
    expect(await reload()).toMatchObject({
      code: 0,
      output: 'No service has changed.\n! after a restart: router.url, router.siwx\n',
    });
  });

  it('at SIGHUP keeps the process of a tool whose price changed, and ends that of a tool that is gone', async () => {
    const journal = join(place.dir, 'tool.log');
    const tool = (price: string) =>
      `[[tools]]\nname = "mine/tool"\ncommand = "${process.execPath}"\nargs = ["${STDIO_SERVER}", "journal=${journal}"]\n[tools.pricing]\nper_call = ${price}\n`;
    const child = provide(['--config', await file({ more: tool('0.001') })]);
    const end = await router.next();
    await end.accept(providerId);
    await child.wrote('tool is running');
    const change = async (more: string, told: string) => {
      await file({ more });
      child.signal('SIGHUP');
      await end.heard();
      end.say({ type: 'registered', revision: 2, services: ['mine/one'] });
      await child.wrote(told);
    };
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
    const call = () =>
      end.call({ ':path': '/tool/mine%2Ftool', 'content-type': 'application/json' }, JSON.stringify(list));
    await change(tool('0.002'), '~ tool mine/tool per_call 0.001 -> 0.002');
    expect((await call()).status).toBe(200);
    const journalled = async () => (await readFile(journal, 'utf8')).split('\n');
    expect((await journalled()).filter((line) => line.startsWith('pid '))).toHaveLength(1);
    await change('', '- tool mine/tool');
    // Calls that the router had already admitted are still served.
    expect((await call()).status).toBe(200);
    child.signal('SIGTERM');
    await child.exited;
    expect(await journalled()).toContain('end of input');
    expect(child.exitCode).toBe(0);
  });

  it('prints why the router refused the services, and that they wait while there is no connection', async () => {
    const { child, end } = await started();
    await file({ price: '1.5' });
    const problem = { key: 'provider_name', wrong: '"Mine" is reserved', right: 'another name' };
    const [refused] = await Promise.all([
      reload(),
      end.heard().then(() => end.say({ type: 'refused', message: 'no', problems: [problem] })),
    ]);
    expect(refused).toMatchObject({
      code: 1,
      output: `~ model mine/one prompt 1 -> 1.5\n✗ the router refused the services, so nothing changed:\n  provider_name "Mine" is reserved; right is another name\n`,
    });
    await router.stop();
    await child.wrote('no connection to the router');
    const begun = performance.now();
    expect(await reload()).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^~ model mine\/one prompt 1 -> 1\.5\n! the router is not connected/),
    });
    expect(performance.now() - begun).toBeLessThan(15_000);
  });

  it('does not wait for a proxy that hangs', async () => {
    const { child } = await started();
    child.signal('SIGSTOP');
    const { code, output } = await reload();
    expect([code, output]).toEqual([
      1,
      expect.stringContaining(`The proxy with the process id ${child.pid} does not answer`),
    ]);
    child.signal('SIGCONT');
  });

  it('says so where no proxy runs with the file', async () => {
    await file();
    const { code, output } = await reload();
    expect([code, output]).toEqual([1, expect.stringContaining('there is nothing to reload')]);
    const { child } = await started();
    child.signal('SIGKILL');
    await child.exited;
    expect((await reload()).output).toContain('there is nothing to reload');
  });
});

describe('tollgate provide --validate', () => {
  it('says everything that is wrong, with file and line, and asks nobody', async () => {
    await file({ price: '-1', more: '[[tools]]\nname = "t"\n' });
    const text = (await readFile(join(place.dir, 'provider.toml'), 'utf8')).replace('provider.json', 'nowhere.json');
    await writeFile(join(place.dir, 'provider.toml'), text);
    const { code, output } = await place.run(['provide', '--config', 'provider.toml', '--validate'], { UPSTREAM: '' });
    expect(code).toBe(1);
    for (const key of [
      'router.siwx.keypair_file',
      'models[0].pricing.prompt',
      'models[0].params.api_key',
      'tools[0].pricing.per_call',
    ])
      expect(output).toContain(key);
    expect(output).toMatch(/provider\.toml:\d+ /);
    expect(provider.log).toEqual([]);
  });

  it('tries out what a right file names, and shows it as a table without secrets', async () => {
    const tool = `[[tools]]\nname = "mine/tool"\ndisplay_name = "Mine: Tool"\nprovider_name = "Mine"\ncommand = "${process.execPath}"\nargs = ["${STDIO_SERVER}"]\nenv = { KEY = "std::env::TOOL" }\n[tools.pricing]\nper_call = 0.001\n`;
    // The first answer is whole; the stream comes beside what is asked of the cap.
    provider.instruct({}, { usage: 'none' }, { usage: 'none' }, { usage: 'none' });
    const { code, output } = await place.run(['provide', '--config', await file({ more: tool }), '--validate'], env);
    expect(output).toContain('✓ provider.toml\n');
    expect(output).toContain('✓ model     mine/one  by Mine  prompt 1/1M, completion 2/1M');
    expect(output).toMatch(new RegExp(`^✓ wallet +\\S+ +\\d+ ms {2}this provider is ${providerId}$`, 'm'));
    // The stand-in of a router has no ping.
    expect(output).toMatch(/^✗ router +\S+ +\d+ ms {2}answers with status 404/m);
    expect(output).toMatch(/^✓ model +mine\/one +\d+ ms {2}answers, usage \d+ \+ 1 tokens$/m);
    expect(output).toMatch(
      /^  ! the maximum number of tokens of an answer is not known\. Set params\.max_output_tokens/m,
    );
    expect(output).toMatch(/^✗ model +mine\/one, streamed +\d+ ms {2}streaming: .* no usage/m);
    expect(output).toMatch(/^✓ tool +mine\/tool +\d+ ms {2}3 tools$/m);
    expect(output).not.toContain('canary');
    expect(code).toBe(1);
  });

  it('--no-probe looks at the file alone', async () => {
    const { code, output } = await place.run(['provide', '--config', await file(), '--validate', '--no-probe'], env);
    expect([code, output.split('\n').filter((line) => line.startsWith('✓'))]).toEqual([
      0,
      expect.arrayContaining([expect.stringContaining(router.url)]),
    ]);
    expect(provider.log).toEqual([]);
    expect(router.dials).toEqual([]);
  });
});
