import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ServerProcess } from '../../support/server-process.ts';
import { chat, makePlace, type Place } from './tollgate.ts';

let place: Place;
const arrange = async () => {
  place = await makePlace();
};
const clear = () => place.clear();

const dev = async () => (await place.read('dev.json')) as { base_url: string; api_key: string; admin_key: string };
const balance = async () => {
  const { base_url, api_key } = await dev();
  const response = await fetch(`${base_url}/api/v1/session/balance`, {
    headers: { authorization: `Bearer ${api_key}` },
  });
  return (await response.json()) as { balance_micro_usdc: number };
};

/** The words of a command as a shell reads them, where `curl` is replaced by a function that prints them. */
async function wordsOf(command: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)('/bin/sh', [
    '-c',
    `curl() { for word in "$@"; do printf '%s\\0' "$word"; done; }\n${command}`,
  ]);
  return stdout.split('\0').slice(0, -1);
}

describe('tollgate start, in one directory again and again', () => {
  let gateway: ServerProcess;
  beforeAll(arrange);
  afterAll(clear);

  it('prints calls that work when pasted, and writes the same for programs', async () => {
    gateway = await place.gateway(['start']);
    const output = gateway.output();
    const { base_url, api_key, admin_key } = await dev();
    expect(output).toContain(`${base_url}/api/v1`);
    expect(api_key).toMatch(/^svc-sk-dev-/);
    expect(output.split(api_key)).toHaveLength(2);
    const key = output.match(/^export KEY=.*$/m)![0];
    expect(output).not.toContain(admin_key);
    expect(output).not.toContain('\u001b[');
    for (const name of ['dev.json', 'gateway.json', 'admin-key'])
      expect((await stat(join(place.data, name))).mode & 0o777).toBe(0o600);

    const commands = output.match(/^curl [\s\S]*?'\n(?=\n)/gm)!;
    expect(commands).toHaveLength(4);
    const answers = [];
    for (const command of commands) {
      const words = await wordsOf(`${key}\n${command}`);
      const headers = words.flatMap((word, index) =>
        word === '-H' ? [words[index + 1]!.split(': ') as [string, string]] : [],
      );
      const url = words.find((word) => word.startsWith('http'))!;
      const response = await fetch(url, { method: 'POST', headers, body: words[words.indexOf('-d') + 1]! });
      expect(response.status).toBe(200);
      answers.push(await response.text());
    }
    expect(JSON.parse(answers[0]!)).toMatchObject({ object: 'chat.completion', usage: { cost: expect.any(Number) } });
    expect(answers[1]!.trimEnd().endsWith('data: [DONE]')).toBe(true);
    expect(JSON.parse(answers[2]!)).toMatchObject({
      id: 1,
      result: {
        content: [{ text: expect.stringMatching(/^2d6: \d \+ \d = \d+$/) }],
        _meta: { 'tollgate/generation': { cost: '0.001' } },
      },
    });
    expect(JSON.parse(answers[3]!)).toMatchObject({
      id: 1,
      result: {
        kind: 'task',
        status: { state: 'completed' },
        metadata: { 'tollgate/generation': { own_cost: '0.002', cost: expect.stringMatching(/^0\.003/) } },
      },
    });
    expect(answers[3]).toMatch(/2d6: \d \+ \d = \d+".*demo\/chat: /);
    expect(output).toMatch(
      / Models +demo\/chat .*\n +Images +demo\/image\n +Videos +demo\/video\n +Tools +demo\/tools .*\n +Agents +demo\/agent /,
    );
  });

  it('says what to do when its port is taken or its data in use', async () => {
    const { port } = new URL((await dev()).base_url);
    const taken = await place.run(['start'], { PORT: port, TOLLGATE_DATA: join(place.dir, 'other') });
    expect(taken.code).toBe(1);
    expect(taken.output).toContain(`--port ${Number(port) + 1}`);
    const locked = await place.run(['start']);
    expect(locked.code).toBe(1);
    expect(locked.output).toContain('is open in another tollgate process');
    expect(gateway.exitCode).toBeNull();
    expect(await place.read('gateway.json')).toMatchObject({ pid: gateway.pid });
  });

  it('keeps its key and grants the play money once', async () => {
    const before = await dev();
    await (await chat(before, {})).text();
    gateway.signal('SIGTERM');
    await gateway.exited;
    gateway = await place.gateway(['start']);
    expect((await dev()).api_key).toBe(before.api_key);
    const { balance_micro_usdc: left } = await balance();
    expect(left).toBeGreaterThan(9_900_000);
    expect(left).toBeLessThan(10_000_000);
  });

  it('makes a new key when the old one works no more', async () => {
    const before = await dev();
    gateway.signal('SIGTERM');
    await gateway.exited;
    const [key] = JSON.parse((await place.run(['key', 'list', 'dev', '--json'])).stdout) as { hash: string }[];
    expect((await place.run(['key', 'disable', 'dev', key!.hash.slice(0, 10)])).code).toBe(0);
    gateway = await place.gateway(['start']);
    expect((await dev()).api_key).not.toBe(before.api_key);
    const now = await dev();
    expect((await chat(now, {})).status).toBe(200);
    expect((await chat({ ...now, api_key: before.api_key }, {})).status).toBe(401);
  });
});

describe('tollgate start', () => {
  beforeEach(arrange);
  afterEach(clear);

  it("adds a file's services to the demo; offers a provider that it finds, and routes to it only when told", async () => {
    await writeFile(
      join(place.dir, 'more.toml'),
      `[[models]]\nname = "mine/one"\ndisplay_name = "One"\nprovider_name = "Mine"\n[models.pricing]\nprompt = 1\ncompletion = 1\n` +
        `[models.params]\nmodel = "one"\napi_base = "http://127.0.0.1:9/v1"\napi_key = "std::env::MINE"\n`,
    );
    const seen: string[] = [];
    const ollama = createServer((request, response) => {
      seen.push(`${request.method} ${request.url}`);
      response.setHeader('content-type', 'application/json');
      if (request.url === '/api/tags')
        response.end(JSON.stringify({ models: [{ name: 'tiny:1b' }, { name: '../evil' }, {}] }));
      else {
        const message = { role: 'assistant', content: 'from the Ollama' };
        response.end(
          JSON.stringify({
            id: 'x',
            choices: [{ index: 0, message, finish_reason: 'stop' }],
            usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
          }),
        );
      }
    });
    ollama.listen(0, '127.0.0.1');
    await once(ollama, 'listening');
    const env = { OLLAMA_HOST: `127.0.0.1:${(ollama.address() as AddressInfo).port}` };
    try {
      const without = await place.gateway(['start'], env);
      // People see what comes last: after the calls to paste.
      expect(without.output()).toMatch(/curl [^]*npm start -- --with-ollama[^]*Ctrl-C stops it\.\s*$/);
      expect(without.output()).not.toContain('tiny');
      without.signal('SIGTERM');
      await without.exited;
      const gateway = await place.gateway(['start', '--with-ollama', '--config', 'more.toml'], {
        ...env,
        MINE: 'the-key-of-mine',
      });
      const { data } = (await (await fetch(`${(await dev()).base_url}/api/v1/models`)).json()) as {
        data: { id: string }[];
      };
      const demo = ['demo/chat', 'demo/echo'];
      expect(data.map(({ id }) => id).sort()).toEqual([...demo, 'mine/one', 'ollama/tiny:1b']);
      expect(gateway.output()).not.toContain('the-key-of-mine');
      const answer = (await (await chat(await dev(), { model: 'ollama/tiny:1b' })).json()) as {
        choices: [{ message: { content: string } }];
        usage: { cost: number };
      };
      expect(answer.choices[0].message.content).toBe('from the Ollama');
      expect(answer.usage.cost).toBe(0);
      expect(seen.at(-1)).toBe('POST /v1/chat/completions');
      expect((await chat(await dev(), { model: 'ollama/../evil' })).status).toBe(404);
    } finally {
      ollama.closeAllConnections();
      ollama.close();
    }
  });
});
