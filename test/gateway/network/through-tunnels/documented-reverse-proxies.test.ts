import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { snippetsOf } from '../../../docs/snippets.ts';
import { dialIn, offeredModel } from '../../../support/dial-in.ts';
import { findProgram } from '../../../support/find-program.ts';
import { findFreePort } from '../../../support/free-port.ts';
import { createKeeper, type Keeper } from '../../../support/server-process.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';

// The examples of docs/run/reverse-proxy.md, in a real nginx and a real Caddy with TLS before a gateway.

const NAME = 'gateway.example';
const MIB = 1024 * 1024;
const INSTALL_MS = 200_000;
/** Longer than proxies wait whose time-outs nobody has set. */
const SILENCE_MS = process.env['TOLLGATE_DEEP'] === '1' ? 31_000 : null;

let spine: Spine;
/** Where Caddy keeps the authority that it makes, and the certificates of it. */
let store: string;
let trusted: string[];
const keepers: Keeper[] = [];
const ports: Record<string, number> = {};

beforeAll(async () => {
  spine = await startSpine({
    toml: `[server]\ntrusted_proxies = ["127.0.0.1"]\nallowed_hosts = ["${NAME}"]\n[billing]\ndrain_ms = 20\n${UNHURRIED}`,
  });
  await startCaddy();
  await startNginx();
  trusted = getCACertificates('default');
  setDefaultCACertificates([...trusted, readFileSync(join(store, 'pki/authorities/local/root.crt'), 'utf8')]);
}, INSTALL_MS);
afterAll(async () => {
  if (trusted) setDefaultCACertificates(trusted);
  await Promise.all(keepers.map((keeper) => keeper.close()));
  await spine.stop();
});

/** The example in this language, before the gateway of this test. Every text of `replace` has to be in it. */
function example(language: string, replace: Readonly<Record<string, string>>): string {
  let { text } = snippetsOf('docs/run/reverse-proxy.md').find((snippet) => snippet.language === language)!;
  for (const [from, to] of Object.entries({ '127.0.0.1:8402': new URL(spine.origin).host, ...replace })) {
    expect(text).toContain(from);
    text = text.replaceAll(from, to);
  }
  return text;
}

const certificateOf = (name: string, kind: 'crt' | 'key') => join(store, 'certificates/local', name, `${name}.${kind}`);

async function startCaddy(): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'tollgate-caddy-'));
  store = join(home, 'store');
  const port = (ports['caddy'] = await findFreePort());
  const sites = [NAME, 'localhost'].map((name) => `https://${name}:${port}`).join(', ');
  const ours = `{\n  admin off\n  local_certs\n  skip_install_trust\n  auto_https disable_redirects\n  storage file_system ${store}\n}\n`;
  const file = join(home, 'Caddyfile');
  writeFileSync(file, ours + example('caddyfile', { [`${NAME} {`]: `${sites} {` }));
  const { file: program, env } = findProgram('caddy');
  const keeper = createKeeper([home]);
  keepers.push(keeper);
  const caddy = keeper.start({
    file: program,
    args: ['run', '--config', file, '--adapter', 'caddyfile'],
    env: { ...env, HOME: home },
    cwd: home,
  });
  await caddy.wrote(`certificate obtained successfully","identifier":"${NAME}"`);
  await caddy.wrote('certificate obtained successfully","identifier":"localhost"');
  await caddy.wrote('serving initial configuration');
}

async function startNginx(): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'tollgate-nginx-'));
  mkdirSync(join(home, 'temp'));
  const port = (ports['nginx'] = await findFreePort());
  const server = example('nginx', {
    'listen 443 ssl;': `listen 127.0.0.1:${port} ssl;`,
    '/etc/letsencrypt/live/gateway.example/fullchain.pem': certificateOf('localhost', 'crt'),
    '/etc/letsencrypt/live/gateway.example/privkey.pem': certificateOf('localhost', 'key'),
  });
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((what) => `${what}_temp_path ${home}/temp/${what};`)
    .join('\n');
  // Started by root it would give its work to a user who may not look into this folder.
  const user = process.getuid?.() === 0 ? 'user root;\n' : '';
  const main = `${user}daemon off;\npid ${home}/pid;\nerror_log stderr notice;\nevents {}\n`;
  writeFileSync(join(home, 'nginx.conf'), `${main}http {\naccess_log off;\n${temporary}\n${server}}\n`);
  const { file, env } = findProgram('nginx');
  const keeper = createKeeper([home]);
  keepers.push(keeper);
  const nginx = keeper.start({
    file,
    args: ['-p', home, '-c', join(home, 'nginx.conf'), '-e', 'stderr'],
    env,
    cwd: home,
  });
  await nginx.wrote('start worker process ');
}

describe.each(['nginx', 'caddy'])('%s', (server) => {
  /** Asks the gateway through the server; the head of its answer. */
  async function send(
    path: string,
    body?: string,
    more: Readonly<Record<string, string>> = {},
    method = body === undefined ? 'GET' : 'POST',
  ): Promise<IncomingMessage> {
    const headers = { host: NAME, authorization: `Bearer ${spine.key}`, 'content-type': 'application/json', ...more };
    const asked = request({
      host: '127.0.0.1',
      port: ports[server],
      servername: server === 'caddy' ? NAME : 'localhost',
      path,
      method,
      headers,
      // A refused body ends its connection.
      agent: false,
    });
    // What is still being sent when the answer has come fails then.
    asked.on('error', () => {});
    asked.end(body);
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    return answer.on('error', () => {});
  }
  const textOf = async (answer: IncomingMessage) => Buffer.concat(await answer.toArray()).toString();
  const chat = (content: string, more: object = {}) => JSON.stringify(ask(content, more));

  test('the gateway learns by which name and scheme it was asked', async () => {
    expect(await textOf(await send('/'))).toContain(`OPENAI_BASE_URL=https://${NAME}/api/v1`);
  });

  test('a stream passes as it comes, and a client that leaves is noticed', async () => {
    const calls = spine.provider.log.length;
    const answer = await send('/api/v1/chat/completions', chat('!tokens:20 !stall:900', { stream: true }));
    const [first] = (await once(answer, 'data')) as [Buffer];
    expect(first.toString()).toContain('data: {');
    // The provider says nothing more: only that its caller is gone ends this call.
    answer.destroy();
    await spine.provider.settled(calls + 1);
    expect(spine.provider.log.at(-1)!.end).toBe('client_closed');
  });

  async function untilAnswered(ask: () => Promise<IncomingMessage>, tries = 10): Promise<IncomingMessage> {
    try {
      return await ask();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET' || tries === 1) throw error;
      return untilAnswered(ask, tries - 1);
    }
  }

  test('a body as large as the gateway takes passes, and it is the gateway that refuses a larger one', async () => {
    const large = await send('/api/v1/chat/completions', chat('x'.repeat(9 * MIB)));
    expect([large.statusCode, await textOf(large)]).toEqual([200, expect.stringContaining('"usage"')]);
    // Caddy may reset the connection of a client that is still sending before the client has read the answer.
    const tooLarge = await untilAnswered(() => send('/api/v1/chat/completions', chat('x'.repeat(11 * MIB))));
    expect([tooLarge.statusCode, await textOf(tooLarge)]).toEqual([413, expect.stringContaining('"error"')]);
  });

  test('an MCP client calls through it', async () => {
    const answer = await send(
      '/mcp',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find_tools","arguments":{"query":""}}}',
    );
    expect([answer.statusCode, await textOf(answer)]).toEqual([200, expect.stringContaining('"searched"')]);
  });

  test('a provider dials in through it, and is called through it', async () => {
    const router = `https://localhost:${ports[server]}`;
    const proxy = await dialIn({
      router,
      services: offeredModel({ url: spine.provider.url, name: `${server}/model`, provider: server }),
    });
    try {
      const answer = await send('/api/v1/chat/completions', chat('!tokens:30', { model: `${server}/model` }));
      expect([answer.statusCode, await textOf(answer)]).toEqual([
        200,
        expect.stringContaining('"completion_tokens":30'),
      ]);
    } finally {
      await proxy.close();
    }
  });

  test.each(SILENCE_MS === null ? [] : [SILENCE_MS])(
    'a silence of %i ms ends no stream, no MCP stream and no tunnel',
    async (silenceMs) => {
      const router = `https://localhost:${ports[server]}`;
      const provider = `${server}-silent`;
      const name = `${provider}/model`;
      const proxy = await dialIn({
        router,
        services: offeredModel({ url: spine.provider.url, name, provider }),
      });
      const client = new OpenAI({ baseURL: `${router}/api/v1`, apiKey: spine.key, maxRetries: 0 });
      const stream = async (model: string) => {
        const chunks = await client.chat.completions.create({
          model,
          messages: [{ role: 'user', content: `!tokens:20 !stall:900:${silenceMs}` }],
          stream: true,
          stream_options: { include_usage: true },
        });
        let [longest, at, tokens] = [0, performance.now(), 0];
        for await (const { usage } of chunks) {
          longest = Math.max(longest, performance.now() - at);
          at = performance.now();
          tokens = usage?.completion_tokens ?? tokens;
        }
        expect(tokens).toBe(20);
        expect(longest).toBeGreaterThan(silenceMs - 1_000);
      };
      const listen = async () => {
        const accept = { accept: 'application/json, text/event-stream' };
        const opened = await send(
          '/mcp',
          '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}',
          accept,
        );
        await textOf(opened);
        const session = { ...accept, 'mcp-session-id': String(opened.headers['mcp-session-id']) };
        const listening = await send('/mcp', undefined, session);
        expect(listening.statusCode).toBe(200);
        listening.resume();
        let ended = false;
        const end = once(listening, 'end').then(() => (ended = true));
        await pause(silenceMs);
        expect(ended).toBe(false);
        await textOf(await send('/mcp', undefined, session, 'DELETE'));
        await end;
      };
      try {
        // The model that is called through the tunnel is silent there, too.
        await Promise.all([stream(ask('').model), stream(name), listen()]);
        const answer = await send('/api/v1/chat/completions', chat('!tokens:30', { model: name }));
        expect([answer.statusCode, await textOf(answer)]).toEqual([
          200,
          expect.stringContaining('"completion_tokens":30'),
        ]);
      } finally {
        await proxy.close();
      }
    },
    60_000,
  );
});

test('the books are in order', async () => {
  expect(await spine.faults()).toEqual([]);
});
