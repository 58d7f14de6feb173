import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it, onTestFinished } from 'vitest';
import { loadConfig } from '#config';
import { runGateway } from '../../../src/program/cli/gateway/gateway-process.ts';
import { findFreePort } from '../../support/free-port.ts';
import { freshDatabase } from '../../support/fresh-database.ts';
import { chat, makePlace, type Place } from './tollgate.ts';
import { endUnread } from './unread-log.ts';

let place: Place;
beforeEach(async () => {
  place = await makePlace();
  await writeFile(join(place.dir, 'tollgate.toml'), toml('1'));
});
afterEach(() => place.clear());

const toml = (price: string) =>
  `[[models]]\nname = "mine/one"\ndisplay_name = "One"\nprovider_name = "Mine"\n[models.pricing]\nprompt = ${price}\ncompletion = 1\n` +
  `[models.params]\nmodel = "one"\napi_base = "http://127.0.0.1:9/v1"\napi_key = "std::env::MINE"\n`;
const env = { MINE: 'the-key-of-mine' };

describe('tollgate serve', () => {
  it('is production: the models of its file, no play money, no development keys, JSON logs', async () => {
    const start = await place.gateway(['start']);
    const dev = (await place.read('dev.json')) as { base_url: string; api_key: string };
    start.signal('SIGTERM');
    await start.exited;
    const otel = { OTEL_LOGS_EXPORTER: 'console' };
    const gateway = await place.gateway(['serve', '--config', 'tollgate.toml'], { ...env, ...otel });
    const { base_url } = (await place.read('gateway.json')) as { base_url: string };
    const { data } = (await (await fetch(`${base_url}/api/v1/models`)).json()) as { data: { id: string }[] };
    expect(data.map(({ id }) => id)).toEqual(['mine/one']);
    expect((await chat({ base_url, api_key: dev.api_key }, { model: 'mine/one' })).status).toBe(401);
    gateway.signal('SIGTERM');
    await gateway.exited;
    expect(gateway.exitCode).toBe(0);
    const lines = gateway.stdout().trim().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
      'listening',
      'stopping: running calls may finish',
    ]);
    expect(gateway.output()).not.toContain('the-key-of-mine');
    expect(gateway.output()).toContain('OTEL_LOGS_EXPORTER is "console": only otlp sends them');
  });

  it('says at its start that it has nothing to sell, and what to do', async () => {
    const gateway = await place.gateway(['serve'], env);
    expect(gateway.output()).toContain(
      'Nothing is on sale: no configuration file is named, and no provider may connect. Name a file with --config, or let',
    );
    expect(JSON.parse(gateway.stdout())).toMatchObject({
      msg: 'listening',
      models: 0,
      config: 'no file: name one with --config',
    });
    gateway.signal('SIGTERM');
    await gateway.exited;
    const admitting = { TOLLGATE_PROVIDERS: 'anyone', TOLLGATE_SIGN_IN_DOMAINS: 'gate.example' };
    const market = await place.gateway(['serve'], { ...env, ...admitting });
    expect(market.output()).toContain('No service of yours is on sale: no configuration file is named. Until');
    market.signal('SIGTERM');
    await market.exited;
  });

  it('says at its start that providers are let in, but no wallet can sign in', async () => {
    const admitting = { ...env, TOLLGATE_PROVIDERS: 'anyone' };
    const gateway = await place.gateway(['serve', '--config', 'tollgate.toml'], admitting);
    expect(gateway.output()).toMatch(/^Providers: no wallet can sign in, nor a provider's: set \[sign_in\] domains/m);
    gateway.signal('SIGTERM');
    await gateway.exited;
    const named = await place.gateway(['serve', '--config', 'tollgate.toml'], {
      ...admitting,
      TOLLGATE_SIGN_IN_DOMAINS: 'gate.example',
    });
    expect(named.output()).not.toContain('no wallet can sign in');
  });

  it('says what agents cannot do without an address of the gateway', async () => {
    const agent = `[[agents]]\nname = "mine/agent"\nendpoint = "http://127.0.0.1:9/a2a"\npricing = { per_call = 0.01 }\n`;
    await writeFile(join(place.dir, 'tollgate.toml'), toml('1') + agent);
    const words = /^(?:! a|Agents: a)gents cannot send notifications .*: set server\.public_url$/m;
    const gateway = await place.gateway(['serve', '--config', 'tollgate.toml'], env);
    expect(gateway.output()).toMatch(words);
    expect(gateway.output()).not.toContain('no wallet can sign in');
    const validate = async (more: NodeJS.ProcessEnv) =>
      (await place.run(['serve', '--config', 'tollgate.toml', '--validate'], { ...env, ...more })).output;
    expect(await validate({})).toMatch(words);
    expect(await validate({ TOLLGATE_PUBLIC_URL: 'https://gate.example' })).not.toMatch(words);
  });

  it('says which port for other gateways is taken', async () => {
    const database = await freshDatabase(inject('postgresUrl'));
    onTestFinished(() => database.drop());
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const { code, output } = await place.run(['serve', '--config', 'tollgate.toml'], {
      ...env,
      DATABASE_URL: database.url,
      TOLLGATE_CLUSTER_PORT: String(port),
      TOLLGATE_CLUSTER_URL: `https://127.0.0.1:${port}`,
    });
    expect(code).toBe(1);
    expect(output).toContain(
      `The listener for the other gateways of the database cannot be opened: port ${port} on 127.0.0.1 is taken by another program.\n`,
    );
    expect(output).not.toMatch(/unexpected error|^ +at /m);
  });

  it.each<[string, NodeJS.ProcessEnv, string]>([
    ['a port that is taken', { PORT: '{taken}' }, 'is taken by another program'],
    ['a treasury without a key', {}, 'The treasury of eip155:8453'],
    ['a PostgreSQL that does not answer', { DATABASE_URL: 'postgres://127.0.0.1:9/none' }, 'PostgreSQL'],
  ])('leaves nothing behind where nothing was, when it fails at %s', async (what, more, says) => {
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const chain = '[[chains]]\nnetwork = "eip155:8453"\nrpc_url = "http://127.0.0.1:9"\nkeypair_file = "none.json"\n';
    await writeFile(join(place.dir, 'tollgate.toml'), toml('1') + (what === 'a treasury without a key' ? chain : ''));
    const folder = join(place.dir, 'new', 'data');
    const asked = Object.entries(more).map(([name, value]) => [name, value?.replace('{taken}', String(port))]);
    const serve = () =>
      place.run(['serve', '--config', 'tollgate.toml', '--data', folder], { ...env, ...Object.fromEntries(asked) });
    const { code, output } = await serve();
    expect([code, output]).toEqual([1, expect.stringContaining(says)]);
    expect(existsSync(join(place.dir, 'new'))).toBe(false);
    // What was there stays.
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'mine'), 'mine');
    expect((await serve()).code).toBe(1);
    expect(await readFile(join(folder, 'mine'), 'utf8')).toBe('mine');
  });

  it('ends although nobody reads its log any more', () => endUnread(place));

  it('--validate says that a file is right, without its secrets', async () => {
    const { code, output } = await place.run(['serve', '--config', 'tollgate.toml', '--validate'], env);
    expect(code).toBe(0);
    expect(output).toContain('✓ model     mine/one  by Mine  prompt 1/1M, completion 1/1M  → http://127.0.0.1:9/v1');
    expect(output).not.toContain('the-key-of-mine');
    expect(output).toMatch(/^! no wallet can sign in, nor a provider's: set \[sign_in\] domains/m);
    const known = await place.run(['serve', '--config', 'tollgate.toml', '--validate'], {
      ...env,
      TOLLGATE_SIGN_IN_DOMAINS: 'gate.example',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://me:password-of-mine@collector:4318',
      OTEL_LOGS_EXPORTER: 'otlp',
      TOLLGATE_PUBLIC_URL: 'https://gate.example',
      TOLLGATE_PEOPLE_ISSUER: 'https://login.example/acme',
      TOLLGATE_PEOPLE_CLIENT_ID: 'tollgate',
      TOLLGATE_PEOPLE_CLIENT_SECRET: 'secret-of-mine',
    });
    expect(known.output).toMatch(
      /^✓ people    sign in at https:\/\/login\.example\/acme, .* https:\/\/gate\.example\/api\/v1\/auth\/people\/callback$/m,
    );
    expect(known.output).not.toContain('secret-of-mine');
    expect(known.output).toContain('✓ traces    sent to collector:4318\n');
    expect(known.output).toContain('✓ logs      sent to collector:4318 too\n');
    expect(known.output).not.toContain('password-of-mine');
    expect(known.output).toContain('✓ wallets   sign in for gate.example\n');
    expect(known.output).not.toContain('! no wallet');
    expect(known.output).toMatch(
      /^! providers nobody may connect, because the file does not say who may\. Add to it, below \[tunnel\]: providers = "anyone"/m,
    );
  });

  it('--validate --probe also calls the services, and shows which do not answer', async () => {
    const validate = (...flags: string[]) =>
      place.run(['serve', '--config', 'tollgate.toml', '--validate', ...flags], env);
    const file = await validate();
    expect([file.code, file.output]).toEqual([0, expect.stringContaining('To call each of them: --validate --probe')]);
    const called = await validate('--probe');
    expect(called.code).toBe(1);
    expect(called.output).toMatch(/^✗ model +mine\/one +\d+ ms /m);
    expect(called.output).not.toContain('the-key-of-mine');
    const alone = await place.run(['serve', '--probe'], env);
    expect([alone.code, alone.output]).toEqual([1, expect.stringContaining('--probe is for --validate')]);
    await writeFile(join(place.dir, 'tollgate.toml'), toml('1') + toml('1').replace('"Mine"', '"Other"'));
    expect((await validate('--probe')).output.match(/^✗ model +mine\/one \(\w+\) /gm)).toHaveLength(2);
  });

  it('--validate says which ports are taken, except by the gateway that it is about', async () => {
    const database = await freshDatabase(inject('postgresUrl'));
    onTestFinished(() => database.drop());
    const takePort = async () => {
      const other = createServer().listen(0, '127.0.0.1');
      onTestFinished(() => void other.close());
      await once(other, 'listening');
      return (other.address() as AddressInfo).port;
    };
    const validate = async (more: NodeJS.ProcessEnv, ...flags: string[]) => {
      const { code, output } = await place.run(['serve', '--config', 'tollgate.toml', '--validate', ...flags], {
        ...env,
        DATABASE_URL: database.url,
        ...more,
      });
      // The file is right, whatever else runs on this machine.
      expect(code, output).toBe(0);
      return output;
    };
    const port = await takePort();
    const clusterPort = await takePort();
    const taken = await validate({
      PORT: String(port),
      TOLLGATE_CLUSTER_PORT: String(clusterPort),
      TOLLGATE_CLUSTER_URL: `https://127.0.0.1:${clusterPort}`,
    });
    expect(taken).toContain(`! Port ${port} on 127.0.0.1 is taken by another program.\n  Use another port: `);
    expect(taken).toContain(`: port ${clusterPort} on 127.0.0.1 is taken by another program.\n  Use another port: `);
    // The second worker's port.
    const ofWorkers = { TOLLGATE_CLUSTER_PORT: String(clusterPort - 1), TOLLGATE_CLUSTER_URL: 'https://127.0.0.1:0' };
    expect(await validate(ofWorkers, '--workers', '2')).toContain(`: port ${clusterPort} on 127.0.0.1 is taken`);

    const own = await findFreePort();
    const ofGateway = {
      PORT: String(await findFreePort()),
      TOLLGATE_CLUSTER_PORT: String(own),
      TOLLGATE_CLUSTER_URL: `https://127.0.0.1:${own}`,
    };
    const gateway = await place.gateway(['serve', '--config', 'tollgate.toml'], {
      ...env,
      DATABASE_URL: database.url,
      ...ofGateway,
    });
    expect(await validate(ofGateway)).not.toMatch(/taken by another program|another file/);
    // A reader who tries a file beside a gateway of another one.
    await writeFile(join(place.dir, 'beside.toml'), await readFile(join(place.dir, 'tollgate.toml'), 'utf8'));
    expect(await validate(ofGateway, '--config', 'beside.toml')).toMatch(
      /^! A gateway with another file runs on .*\(process \d+\)\.\n {2}End it .*: --data \.\/gateway --port \d+$/m,
    );
    gateway.signal('SIGTERM');
    await gateway.exited;
    // Free ports are closed again, so the gateway can have them.
    for (const again of [1, 2]) expect(await validate(ofGateway), `${again}`).not.toContain('taken by another program');
  });

  it('--validate says everything that is wrong', async () => {
    await writeFile(join(place.dir, 'wrong.toml'), `[server]\nprt = 1\n${toml('-1')}`);
    const { code, output } = await place.run(['serve', '--config', 'wrong.toml', '--validate']);
    expect(code).toBe(1);
    expect(output).toContain('3 problems');
    for (const key of ['server.prt', 'models[0].pricing.prompt', 'models[0].params.api_key'])
      expect(output).toContain(key);
  });

  it('does not start on a file that is wrong or missing', async () => {
    const { code, output } = await place.run(['serve', '--config', 'nowhere.toml']);
    expect(code).toBe(1);
    expect(output).toContain('nowhere.toml');
    expect(output).not.toContain('    at ');
  });
});

it('a SIGHUP that comes while the gateway is built waits for it', async () => {
  const overrides = { 'server.data_dir': place.data, 'server.log_level': 'silent' };
  const read = () => loadConfig({ file: null, env: { PORT: '0' }, mode: 'production', overrides });
  const loaded = Promise.withResolvers<void>();
  let loads = 0;
  const load = () => {
    loads += 1;
    loaded.resolve();
    return read();
  };
  // A gateway does not stay for whoever started it. The worker of the tests is to stay: it has files to come.
  onTestFinished(() => process.channel?.ref());
  const listeners = process.listenerCount('SIGHUP');
  const running = runGateway(
    { ...read(), adminKey: 'a'.repeat(40) },
    {
      configFile: null,
      load,
      discovery: false,
      pages: false,
      async ready() {
        await loaded.promise;
        process.listeners('SIGTERM').at(-1)!('SIGTERM');
      },
    },
  );
  expect(process.listenerCount('SIGHUP')).toBe(listeners + 1);
  process.listeners('SIGHUP').at(-1)!('SIGHUP');
  expect(loads).toBe(0);
  await running;
  expect(loads).toBe(1);
  expect(process.listenerCount('SIGHUP')).toBe(listeners);
});
