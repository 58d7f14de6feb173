import { once } from 'node:events';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { isIPv4, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findConnection } from '../../../src/program/cli/connect/connection.ts';
import { ownAddresses } from '../../../src/program/cli/discovery.ts';
import { makePlace, type Place } from './tollgate.ts';

// What is wrong is told before a client is set up with it.

let place: Place;
let key: string;
let base: string;
let other: Server;
let seen: IncomingHttpHeaders[] = [];
let otherBase: string;
beforeAll(async () => {
  place = await makePlace();
  await place.gateway(['start']);
  ({ base_url: base, api_key: key } = (await place.read('dev.json')) as { base_url: string; api_key: string });
  other = createServer((request, response) => {
    seen.push(request.headers);
    response.end('<html>Welcome</html>');
  });
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  otherBase = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
});
afterAll(async () => {
  other.close();
  await place.clear();
});

const connect = (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  place.run(['connect', 'claude-code', ...args], env);

test('it takes the gateway that runs on the data directory, with its key and a model', async () => {
  const { code, output } = await connect([]);
  expect(code, output).toBe(0);
  expect(output).toContain(`At ${base}, balance 10 USD, model demo/chat`);
  expect(output).toContain(key);
});

test('an address may have what clients append to it', async () => {
  for (const suffix of ['/', '/api', '/api/v1', '/api/v1/', '/v1', '/mcp'])
    expect((await connect(['--url', `${base}${suffix}`])).output).toContain(`"${base}/api"`);
  expect((await connect([], { TOLLGATE_URL: `${base}/api/v1` })).code).toBe(0);
});

test('the command that writes has what was given, but no key', async () => {
  const args = ['--url', `${base}/v1`, '--model', 'demo/chat:floor', '--key', key];
  const { output } = await connect(args);
  expect(output).toContain(
    `tollgate.mjs connect claude-code --url ${base}/v1 --model demo/chat:floor --key "$KEY" --write`,
  );
  const { output: other } = await place.run(['connect', 'cursor', '--mcp', '--data', place.data]);
  expect(other).toMatch(/To write it: \S.* connect cursor --data \S+ --mcp --write/);
});

test('models with a suffix, agents and tools can be named', async () => {
  for (const model of ['demo/echo', 'demo/chat:floor', 'a2a/demo/agent', 'mcp/demo/tools/roll_dice'])
    expect((await connect(['--model', model])).output).toContain(`"ANTHROPIC_MODEL": "${model}"`);
});

test.each([
  ['an address where nothing answers', ['--url', 'http://127.0.0.1:9'], /127\.0\.0\.1:9 does not answer/],
  ['a word for an address', ['--url', 'gateway'], /--url is not the address of a gateway: gateway/],
  [
    'a password in the address',
    ['--url', 'http://:hunter2@127.0.0.1:9'],
    /--url contains a user or a password\.\nRemove them\. The API key goes in --key or TOLLGATE_API_KEY\./,
  ],
  ['a wrong key', ['--key', 'svc-sk-no'], /refuses this API key/],
  ['a model that is not there', ['--model', 'demo/sgae'], /offers no model demo\/sgae\.\nThe nearest: demo\/chat/],
  ['a model of embeddings', ['--model', 'demo/embedding'], /offers no model demo\/embedding/],
  ['an agent that is not there', ['--model', 'a2a/demo/croupie'], /no agent demo\/croupie\.\nThe nearest: demo\/agent/],
])('%s is told', async (_name, args, words) => {
  const { code, output } = await connect(args);
  expect(output).toMatch(words);
  expect(code).toBe(1);
});

test('another server is not taken for a gateway, and gets no key', async () => {
  seen = [];
  for (const args of [
    ['--url', otherBase],
    ['--url', otherBase, '--key', key],
  ]) {
    const { code, output } = await connect(args);
    expect(code).toBe(1);
    expect(output).toContain(`${otherBase} answered with status 200, but not as tollgate does.`);
  }
  expect(seen).toHaveLength(2);
  expect(JSON.stringify(seen)).not.toContain('svc-sk');
});

test('the key of a development gateway is for that gateway alone', async () => {
  const second = await makePlace();
  try {
    await second.gateway(['start']);
    const { base_url: secondBase } = await second.read('dev.json');
    const { code, output } = await connect(['--url', secondBase!]);
    expect(code).toBe(1);
    expect(output).toContain(`No API key for ${secondBase} is known.`);
    expect((await connect(['--url', secondBase!], { TOLLGATE_API_KEY: key })).output).toContain('refuses this API key');
  } finally {
    await second.clear();
  }
});

/** A folder as somebody else made it, with the file of a development gateway. */
async function foreignData(name: string, baseUrl: string, apiKey: string): Promise<string> {
  const data = join(place.dir, name);
  await mkdir(data);
  const content = { base_url: baseUrl, api_key: apiKey, admin_key: 'x' };
  await writeFile(join(data, 'dev.json'), JSON.stringify(content));
  return data;
}

test('a file of the folder does not send anybody to another machine', async () => {
  const data = await foreignData('elsewhere', 'https://gateway.invalid', 'svc-sk-theirs');
  const { code, output } = await connect(['--data', data], { TOLLGATE_API_KEY: 'svc-sk-mine' });
  expect(output).toContain('name a gateway on another machine: https://gateway.invalid\nIf you mean that one, name it');
  expect(output).not.toContain('svc-sk');
  expect(code).toBe(1);
});

test('an address of this machine in its network is no other machine', async () => {
  // Without a network it is 127.0.0.1.
  const address = ownAddresses().findLast((one) => isIPv4(one))!;
  const data = await foreignData('network', `http://${address}:9`, 'svc-sk-mine');
  const { code, output } = await connect(['--data', data]);
  expect([code, output]).toEqual([1, expect.stringContaining(`http://${address}:9`)]);
  expect(output).not.toContain('another machine');
});

test('a gateway that a file names gets the key of that file, not the key of the environment', async () => {
  const keys: (string | undefined)[] = [];
  const strange = createServer((request, response) => {
    keys.push(request.headers.authorization);
    const models = [{ id: 'good/one', context_length: 9, architecture: { output_modalities: ['text'] } }];
    const answers = { '/api/v1/models/count': { data: { count: 1 } }, '/api/v1/models': { data: models } };
    response.end(JSON.stringify(answers[request.url as keyof typeof answers] ?? { balance_usd: '1' }));
  });
  strange.listen(0, '127.0.0.1');
  await once(strange, 'listening');
  try {
    const url = `http://127.0.0.1:${(strange.address() as AddressInfo).port}`;
    const env = { TOLLGATE_API_KEY: 'svc-sk-mine' };
    const data = await foreignData('local', url, 'svc-sk-theirs');
    expect((await connect(['--data', data], env)).output).toContain('svc-sk-theirs');
    const without = await connect(['--data', await foreignData('without', url, '')], env);
    expect(without.output).toContain(
      `so TOLLGATE_API_KEY is not shown to it.\nIf the key is for that gateway, name it`,
    );
    expect(without.code).toBe(1);
    expect(keys.filter(Boolean)).toEqual(['Bearer svc-sk-theirs']);
    // Who names the gateway means it.
    expect((await connect(['--data', data, '--url', url], env)).output).toContain('svc-sk-mine');
  } finally {
    strange.close();
  }
});

test('it finds the gateway of its folder, else that of the checkout', async () => {
  const [checkout, used, elsewhere] = ['checkout', 'used', 'elsewhere-again'].map((name) => join(place.dir, name));
  const other = { base_url: 'https://gateway.invalid', api_key: 'svc-sk-other', admin_key: 'x' };
  await mkdir(checkout!);
  await symlink(place.data, join(checkout!, '.tollgate'));
  await mkdir(elsewhere!);
  const ask = (options: { readonly cwd: string; readonly checkout: string }) =>
    findConnection({}, { env: {}, keyless: false, ...options });
  const ours = { base, key, model: 'demo/chat' };
  expect(await ask({ cwd: elsewhere!, checkout: checkout! })).toMatchObject(ours);
  const forAgents = { env: {}, keyless: false, cwd: elsewhere!, checkout: checkout!, calls: 'agents' } as const;
  expect((await findConnection({}, forAgents)).model).toMatch(/^a2a\/demo\//);
  // A checkout in which `npm start` has run is one more folder with a gateway.
  await mkdir(join(used!, '.tollgate'), { recursive: true });
  await writeFile(join(used!, '.tollgate', 'dev.json'), JSON.stringify(other));
  expect(await ask({ cwd: checkout!, checkout: used! })).toMatchObject(ours);
  await expect(ask({ cwd: used!, checkout: checkout! })).rejects.toThrow('gateway.invalid');
});

test('names that no gateway gives are left out of what is written', async () => {
  const strange = createServer((request, response) => {
    const names = ['good/one', "bad'); evil('", 'bad/\u001b[2J', '__proto__ x'];
    const models = names.map((id) => ({ id, context_length: 9, architecture: { output_modalities: ['text'] } }));
    const answers = {
      '/api/v1/models/count': { data: { count: 9 } },
      '/api/v1/models': { data: [...models, null, 5] },
    };
    response.end(JSON.stringify(answers[request.url as keyof typeof answers] ?? { balance_usd: '\u001b[2J1' }));
  });
  strange.listen(0, '127.0.0.1');
  await once(strange, 'listening');
  try {
    const url = `http://127.0.0.1:${(strange.address() as AddressInfo).port}`;
    const { code, output } = await place.run(['connect', 'librechat', '--url', url, '--key', 'svc-sk-x']);
    expect(code, output).toBe(0);
    expect(output).toContain('- good/one\n');
    for (const one of ['bad', '__proto__', '\u001b']) expect(output).not.toContain(one);
  } finally {
    strange.close();
  }
});

test.each(['openai-v1', 'openai-java', 'async-openai', 'go-openai', 'autogen-ext'])(
  '%s, which reads strictly, gets the address below /v1',
  async (name) => {
    const { code, output } = await place.run(['connect', name]);
    expect(code, output).toBe(0);
    expect(output).toMatch(/OPENAI_BASE_URL="?http:\/\/[^/]+\/v1\b/);
  },
);

test('a client that is not known is told with the nearest', async () => {
  const { code, output } = await place.run(['connect', 'claude-kode']);
  expect(code).toBe(1);
  expect(output).toMatch(/no client claude-kode here\.\nThe nearest: claude-code/);
  expect((await place.run(['connect'])).code).toBe(2);
  expect((await place.run(['connect', 'vscode', '--mcp'])).code).toBe(0);
  expect((await place.run(['connect', 'openai', '--mcp'])).output).toContain('has no MCP servers');
});
