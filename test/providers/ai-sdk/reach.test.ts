import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { createSdkWorkers } from '../../../src/providers/ai-sdk/workers.ts';
import { GLOBALS, MODULE, MODULES, OS, PROCESS, V8, WAYS } from './support/reach.ts';

// All that a package can reach in Node, and that nothing of it has been overlooked: by the walls of Node alone, so
// that the second wall hides no hole in the first.

/** A package that lists what it sees, and tries each way out. */
const SOURCE = `
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import v8 from 'node:v8';
import Module, { builtinModules, createRequire } from 'node:module';
import { dirname } from 'node:path';

const event = (emitter, name) => new Promise((done, fail) => { emitter.once(name, done); emitter.once('error', fail); });
const membersOf = (object) => object === null || object === Object.prototype ? [] :
  [...Object.getOwnPropertyNames(object), ...membersOf(Object.getPrototypeOf(object))];
const AsyncFunction = (async () => {}).constructor;

const see = async () => {
  const language = new Set(await (await import('node:vm')).runInNewContext('Object.getOwnPropertyNames(globalThis)'));
  const hidden = ['sqlite', 'ffi', 'quic', 'vfs', 'dtls', 'bench', 'stream/iter', 'zlib/iter'];
  const there = hidden.filter((name) => process.getBuiltinModule('node:' + name) !== undefined);
  const emitter = new Set(membersOf((await import('node:events')).EventEmitter.prototype));
  return {
    modules: [...builtinModules.map((name) => name.replace('node:', '')), ...there],
    process: membersOf(process).filter((name) => !emitter.has(name)),
    os: Object.keys(await import('node:os')),
    v8: Object.keys(await import('node:v8')),
    module: Object.keys(await import('node:module')),
    globals: Object.getOwnPropertyNames(globalThis).filter((name) => !language.has(name)),
  };
};

const attempt = async ({ code, beyond, pid, port }) => {
  const names = { fs, net, os, v8, Module, createRequire, dirname, event, beyond, pid, port };
  const source = /\\b(?:return|const|for|if|throw)\\b/.test(code.split('(')[0]) || code.includes(';') ? code : 'return ' + code;
  const text = source.replaceAll('import.meta.dirname', JSON.stringify(import.meta.dirname))
    .replaceAll('import.meta.url', JSON.stringify(import.meta.url)).replaceAll('import(', 'load(');
  try {
    const result = await new AsyncFunction(...Object.keys(names), 'load', text)(...Object.values(names), (name) => import(name));
    return result === 'nothing' ? 'nothing' : 'SUCCEEDED';
  } catch (error) {
    return (error.code ?? error.name) + ' ' + error.message;
  }
};

export function createReach() {
  const model = (modelId) => ({
    specificationVersion: 'v4', provider: 'reach', modelId, supportedUrls: {},
    async doGenerate({ prompt }) {
      const { see: sees, tries } = JSON.parse(prompt[0].content[0].text);
      const text = sees ? await see() : {};
      for (const [name, task] of Object.entries(tries ?? {})) text[name] = await attempt(task);
      return {
        content: [{ type: 'text', text: JSON.stringify(text) }], finishReason: { unified: 'stop', raw: 'stop' },
        usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } }, warnings: [],
      };
    },
  });
  return { specificationVersion: 'v4', languageModel: model, embeddingModel: model, imageModel: model };
}
`;

function startReach() {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-reach-'));
  const at = join(directory, 'node_modules', 'reach');
  mkdirSync(at, { recursive: true });
  writeFileSync(join(at, 'package.json'), '{"name":"reach","version":"1.0.0","type":"module","exports":"./index.js"}');
  writeFileSync(join(at, 'index.js'), SOURCE);
  const beyond = join(directory, 'secret.txt');
  writeFileSync(beyond, 'secret');
  const workers = createSdkWorkers({
    connectionsMax: 10,
    headTimeoutMs: 300_000,
    idleTimeoutMs: 300_000,
    wall: 'if_available',
    hidden: [],
    log: () => {},
    tell: () => {},
    // No second wall, which would hide what Node lets pass.
    candidates: [],
  });
  onTestFinished(async () => {
    await workers.close();
    rmSync(directory, { recursive: true, force: true });
  });
  const dispatcher = workers.open({ kind: 'sdk', sdk: 'reach', settings: {}, secrets: {}, directory });
  const ask = async (task: unknown): Promise<Record<string, unknown>> => {
    const { body } = await request('http://ai-sdk/chat/completions', {
      dispatcher,
      method: 'POST',
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: JSON.stringify(task) }] }),
    });
    const reply = (await body.json()) as { choices?: { message: { content: string } }[] };
    return JSON.parse(reply.choices?.[0]?.message.content ?? JSON.stringify(reply)) as Record<string, unknown>;
  };
  return { ask, beyond };
}

test('everything that Node gives to a package is judged', async () => {
  const seen = await startReach().ask({ see: true });
  for (const [name, judged] of Object.entries({
    modules: MODULES,
    process: PROCESS,
    os: OS,
    v8: V8,
    module: MODULE,
    globals: GLOBALS,
  })) {
    const there = seen[name] as readonly string[];
    expect(there.length).toBeGreaterThan(10);
    expect([name, there.filter((one) => !judged.has(one))]).toEqual([name, []]);
    expect([name, there.filter((one) => judged.get(one) === 'removed')]).toEqual([name, []]);
    if (name === 'globals') expect(there.filter((one) => judged.get(one) === 'shut')).toEqual([]);
  }
});

test('no way out of a package succeeds, by the walls of Node alone', async () => {
  const { ask, beyond } = startReach();
  const inside = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
  await once(inside, 'listening');
  onTestFinished(() => void inside.close());
  const { port } = inside.address() as AddressInfo;
  const tries = Object.fromEntries(
    Object.entries(WAYS).map(([name, code]) => [name, { code, beyond, pid: process.pid, port }]),
  );
  const came = await ask({ tries });
  expect(Object.keys(came)).toEqual(Object.keys(WAYS));
  /** A fault of the attempt itself would hide that it could succeed. */
  const refused =
    /^nothing$|^ERR_ACCESS_DENIED |^ERR_UNKNOWN_BUILTIN_MODULE |^ERR_DLOPEN_DISABLED |^ERR_INVALID_MODULE|is not defined$|^MODULE_NOT_FOUND |Permission|restricted|^ERR_CRYPTO_CUSTOM_ENGINE/i;
  expect(Object.entries(came).filter(([, text]) => !refused.test(text as string))).toEqual([]);
});

test('each function that is shut in JavaScript is shut here, whatever Node refuses', async () => {
  const { ask, beyond } = startReach();
  const shut = Object.entries({ process: PROCESS, os: OS, v8: V8 }).flatMap(([owner, judged]) =>
    [...judged].filter(([, verdict]) => verdict === 'shut').map(([name]) => [owner, name] as const),
  );
  expect(shut.length).toBeGreaterThan(10);
  // Of a module also as a name that is imported.
  const ways = shut.flatMap(([owner, name]) => [
    [`${owner}.${name}()`, `${owner}.${name}`] as const,
    ...(owner === 'process' ? [] : [[`(await import('node:${owner}')).${name}()`, `${owner}.${name}`] as const]),
  ]);
  const came = await ask({
    tries: Object.fromEntries(ways.map(([code]) => [code, { code, beyond, pid: process.pid, port: 0 }])),
  });
  expect(came).toEqual(
    Object.fromEntries(ways.map(([code, name]) => [code, `ERR_ACCESS_DENIED a package may not call ${name}`])),
  );
});
