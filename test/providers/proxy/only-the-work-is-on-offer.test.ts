import { expect, test } from 'vitest';
import type { ServiceConfig } from '#config';
import { KINDS_OF_MODELS } from '#config/model-kinds';
import { createForward } from '../../../src/providers/proxy/forward.ts';
import { createCallTable, keyOfCall } from '../../../src/providers/proxy/upstreams.ts';
import { modelAt, toolAt } from '../../support/provider-proxy.ts';

type Table = ReturnType<typeof createCallTable>;

/** What came through to the service, and what was answered in its place. */
function ask({ service: { primitive, name } }: ServiceConfig, path: string): string | null {
  let asked: string | null = null;
  const table: Table = createCallTable((key) =>
    key === keyOfCall(primitive, name)
      ? (_stream, _headers, rest) => {
          asked = rest;
        }
      : null,
  );
  const stream = {
    respond() {},
    end() {},
    resume() {},
    on() {},
    once() {},
    closed: false,
    destroyed: false,
    headersSent: false,
  };
  table(stream as unknown as Parameters<Table>[0], { ':path': path });
  return asked;
}

const model = modelAt('m', 'http://127.0.0.1:9/v1');

test.each([
  '/chat/completions',
  '/chat/completions?a=1',
  ...KINDS_OF_MODELS.flatMap(([, { paths }]) => paths),
  '/responses',
  '/messages',
  '/v1beta/models/a%2Fb:generateContent',
  '/v1beta/models/a:streamGenerateContent?alt=sse',
])('a gateway may ask a model for %s', (rest) => {
  expect(ask(model, `/model/m${rest}`)).toBe(rest);
});

test.each([
  '',
  '/',
  '/files',
  '/models',
  '/chat',
  '/chat/completions/',
  '/chat/completions/x',
  '/fine_tuning/jobs',
  '/../admin',
  '/v1beta/models/a',
  '/v1beta/models/a:predict',
  '/v1beta/models/a/b:generateContent',
  '/v1beta/files',
  '/v1beta/cachedContents',
])('and not for "%s", which its key opens as well', (rest) => {
  expect(ask(model, `/model/m${rest}`)).toBeNull();
});

test('a tool is a service of its own', () => {
  expect(ask(toolAt('t', 'http://127.0.0.1:9/mcp'), '/tool/t/any/where')).toBe('/any/where');
});

/** The path that a service at a base address is asked for. */
function pathAt(base: string, rest: string, options: { paths?: 'model' | 'agent'; rpcPath?: string } = {}): string {
  const asked: string[] = [];
  const dispatcher = { dispatch: (request: { readonly path: string }) => asked.push(request.path) > 0 };
  const target = { kind: 'http', url: `http://127.0.0.1:9${base}`, apiKey: 'k' } as const;
  const forward = createForward({ target, ...options, dispatcher: dispatcher as never, failed() {} });
  const stream = { endAfterHeaders: true, on() {}, once() {}, off() {} };
  forward(stream as never, { ':method': 'POST' }, rest);
  return asked.join();
}

test('the version of a base address is left out for models alone', () => {
  const path = '/v1beta/models/m:generateContent';
  expect(pathAt('/v1', path, { paths: 'model' })).toBe(path);
  expect(pathAt('/v1', path)).toBe(`/v1${path}`);
  expect(pathAt('/v1', path, { paths: 'agent' })).toBe(`/v1${path}`);
});

// Its card has the whole address, of which the gateway, which does not know the base, takes the path.
test.each([
  ['', '/agents/planner'],
  ['/agents/planner', '/agents/planner'],
  ['/agents/planner/', '/agents/planner/'],
  ['/agents/planner?a=1', '/agents/planner?a=1'],
  ['/agents/planner/v1/message:send', '/agents/planner/v1/message:send'],
  ['/agents/planners', '/agents/planner/agents/planners'],
  ['/.well-known/agent-card.json', '/agents/planner/.well-known/agent-card.json'],
])('an agent below a base address is asked below that address only, and once ("%s")', (rest, path) =>
  expect(pathAt('/agents/planner', rest, { paths: 'agent' })).toBe(path),
);

test('the path of an agent that the file names is below its base address', () =>
  expect(pathAt('/a2a', '/a2a', { paths: 'agent', rpcPath: '/a2a' })).toBe('/a2a/a2a'));
