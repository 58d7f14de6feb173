import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readTypes, readTypeSource, typesOf } from '../../../scripts/web-types.ts';
import { png } from '../../media/support/image-provider.ts';
import { startGateway, type Gateway } from '../../support/gateway.ts';
import { installStranger } from '../../support/stranger.ts';
import { lacking, oapiCodegen, openApiGenerator, openApiPythonClient, run } from './tools.ts';

// Clients that generators make of /openapi.json: each compiles, and makes the main calls at a gateway with the demo's
// services. A language that is not on the machine is skipped.

const HERE = import.meta.dirname;
const CHECKOUT = resolve(HERE, '../../..');
const MODEL_SAYS = expect.stringContaining('Hello!') as string;
const USD = expect.stringMatching(/^9\.\d+$/) as string;

let gateway: Gateway;
let folder: string;
let document: string;
let env: Record<string, string>;
beforeAll(async () => {
  gateway = await startGateway({ command: 'start' });
  folder = mkdtempSync(join(tmpdir(), 'tollgate-generated-'));
  document = join(folder, 'openapi.json');
  writeFileSync(document, await (await fetch(`${gateway.baseUrl}/openapi.json`)).text());
  env = { ORIGIN: gateway.baseUrl, KEY: gateway.apiKey!, PNG: png(64, 64).toString('hex') };
});
afterAll(async () => {
  await gateway.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A new folder for a client. */
function place(name: string): string {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  return path;
}

/** What openapi-generator makes keeps members that a later gateway adds. */
const KEEPS = ['--additional-properties', 'disallowAdditionalPropertiesIfNotPresent=false'];

const lastLine = (text: string) => JSON.parse(text.trim().split('\n').at(-1)!) as unknown;

test('TypeScript: openapi-typescript and openapi-fetch', () => {
  const installed = installStranger('openapi-typescript');
  const work = place('typescript');
  run(
    process.execPath,
    [join(installed, 'node_modules/openapi-typescript/bin/cli.js'), document, '-o', 'api.ts'],
    work,
  );
  cpSync(join(HERE, 'typed-calls.ts.txt'), join(work, 'calls.ts'));
  writeFileSync(join(work, 'package.json'), '{"type":"module"}');
  cpSync(join(installed, 'node_modules'), join(work, 'node_modules'), { recursive: true });
  const types = ['--types', 'node', '--typeRoots', join(CHECKOUT, 'node_modules/@types')];
  const strict = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'esnext', '--module', 'nodenext'];
  run(
    join(CHECKOUT, 'node_modules/.bin/tsc'),
    [...strict, '--allowImportingTsExtensions', '--ignoreConfig', ...types, 'calls.ts'],
    work,
  );
  expect(lastLine(run(process.execPath, ['calls.ts'], work, env))).toMatchObject({
    chat: MODEL_SAYS,
    prompt_tokens: 8,
    error: 'invalid_model',
    response: 'message',
    models: 2,
    embedding: 64,
    edited: 'png',
    key_deleted: true,
    balance: USD,
  });
});

test('TypeScript: the types that the web pages use', async () => {
  expect(readTypes()).toBe(typesOf(await readTypeSource()));
});

test('Python: openapi-python-client makes every call', ({ skip }) => {
  const why = lacking(['python3', '--version']);
  if (why !== null) return skip(why);
  const path = { PYTHONPATH: openApiPythonClient() };
  const work = place('python');
  const config = ['--config', join(HERE, 'openapi-python-client.yaml'), '--meta', 'none', '--output-path', 'client'];
  const said = run('python3', ['-m', 'openapi_python_client', 'generate', '--path', document, ...config], work, path);
  expect(said).not.toMatch(/WARNING|ERROR|Unable/);
  const calls = join(HERE, 'client.py');
  expect(lastLine(run('python3', [calls], work, { ...path, ...env, CLIENT: work }))).toMatchObject({
    chat: MODEL_SAYS,
    prompt_tokens: 8,
    error: 'invalid_model',
    response: MODEL_SAYS,
    message: MODEL_SAYS,
    models: ['demo/chat', 'demo/echo'],
    embedding: 64,
    image: 'png',
    edited: 'png',
    video: 'completed',
    film: 'ftyp',
    key_works: true,
    key_listed: true,
    key_deleted: true,
    balance: USD,
  });
});

test('Go: oapi-codegen', ({ skip }) => {
  const why = lacking(['go', 'version']);
  if (why !== null) return skip(why);
  const work = place('oapi-codegen');
  mkdirSync(join(work, 'client'));
  cpSync(join(HERE, 'oapi-codegen/main.go'), join(work, 'main.go'));
  const made = ['-generate', 'types,client', '-package', 'client', '-o', 'client/client.go', document];
  run(oapiCodegen(), made, work);
  run('go', ['mod', 'init', 'generated'], work);
  run('go', ['mod', 'tidy'], work);
  expect(lastLine(run('go', ['run', '.'], work, env))).toEqual({
    chat: MODEL_SAYS,
    prompt_tokens: 8,
    models: 2,
    edited: 'png',
    balance: USD,
  });
});

test('Go: openapi-generator', ({ skip }) => {
  const why = lacking(['go', 'version'], ['java', '-version'], ['mvn', '--version']);
  if (why !== null) return skip(why);
  const work = place('openapi-generator-go');
  const names = ['--git-host', 'example.com', '--git-user-id', 'generated', '--git-repo-id', 'client'];
  run(
    'java',
    [
      '-jar',
      openApiGenerator(),
      'generate',
      '-i',
      document,
      '-g',
      'go',
      '-o',
      'client',
      '--package-name',
      'client',
      ...names,
      ...KEEPS,
    ],
    work,
  );
  // Its tests need a library that its go.mod does not name.
  rmSync(join(work, 'client/test'), { recursive: true });
  cpSync(join(HERE, 'openapi-generator/main.go'), join(work, 'main.go'));
  const module = /^module (\S+)/.exec(readFileSync(join(work, 'client/go.mod'), 'utf8'))![1]!;
  expect(module).toBe('example.com/generated/client');
  writeFileSync(
    join(work, 'go.mod'),
    `module calls\n\ngo 1.23\n\nrequire ${module} v0.0.0\n\nreplace ${module} => ./client\n`,
  );
  run('go', ['mod', 'tidy'], work);
  expect(lastLine(run('go', ['run', '.'], work, env))).toEqual({
    chat: MODEL_SAYS,
    prompt_tokens: 8,
    models: 2,
    edited: 'png',
    balance: USD,
  });
});

test('Java: openapi-generator', ({ skip }) => {
  const why = lacking(['java', '-version'], ['mvn', '--version']);
  if (why !== null) return skip(why);
  const work = place('java');
  run('java', ['-jar', openApiGenerator(), 'generate', '-i', document, '-g', 'java', '-o', '.', ...KEEPS], work);
  cpSync(join(HERE, 'Calls.java'), join(work, 'src/main/java/Calls.java'));
  const paths = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath';
  run('mvn', ['-q', 'compile', paths, '-Dmdep.outputFile=classpath.txt'], work);
  const classpath = `target/classes:${readFileSync(join(work, 'classpath.txt'), 'utf8').trim()}`;
  const lines = run('java', ['-cp', classpath, 'Calls'], work, env).trim().split('\n');
  expect(Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2)))).toMatchObject({
    chat: MODEL_SAYS,
    prompt_tokens: '8',
    error: '404',
    response: 'completed',
    message: MODEL_SAYS,
    models: '2',
    image: 'png',
    video: 'completed',
    film: 'ftyp',
    key: 'generated',
    key_deleted: 'true',
    balance: USD,
  });
});
