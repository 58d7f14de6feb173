import { McpServer, createMcpHandler, classifyInboundRequest } from '@modelcontextprotocol/server';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { classify, type Inbound, type InboundHeaders } from '../../src/mcp/wire/classify.ts';
import { ENVELOPE } from './support/inbound.ts';

const deep = process.env['TOLLGATE_DEEP'] === '1';

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const CLIENT = 'io.modelcontextprotocol/clientInfo';
const LEVEL = 'io.modelcontextprotocol/logLevel';
const versions = fc.constantFrom('2026-07-28', '2025-11-25', '2025-06-18', 'v999.0.0');
const methods = fc.constantFrom(
  'initialize',
  'ping',
  'tools/call',
  'tools/list',
  'resources/read',
  'prompts/get',
  'server/discover',
  'x/y',
  'constructor',
);
const names = fc.constantFrom('add', 'sub', 'añadir', '=?base64?YWRk?=', '=?base64?YWRk!?=', ' add', '');
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const meta = fc.oneof(
  { weight: 3, arbitrary: fc.constant<object>(ENVELOPE) },
  fc
    .record({
      [VERSION]: maybe(fc.oneof(versions, fc.constantFrom(1, null))),
      [CAPABILITIES]: maybe(fc.constantFrom<unknown>({}, { sampling: {} }, [], null)),
      [CLIENT]: maybe(fc.constantFrom<unknown>({ name: 'c', version: '1' }, {}, 'c', null)),
      [LEVEL]: maybe(fc.constantFrom<unknown>('info', 'loud', 1, null)),
      progressToken: maybe(fc.constantFrom<unknown>(1, 'a', null)),
    })
    .map((value) => JSON.parse(JSON.stringify(value)) as object),
);
const params = fc.option(
  maybe(
    fc.record({
      _meta: maybe(fc.option(meta)),
      name: maybe(names),
      uri: maybe(names),
      protocolVersion: maybe(versions),
    }),
  ),
);
const message = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      jsonrpc: fc.constant('2.0'),
      id: fc.constantFrom<string | number>(7, 'a', 0),
      method: methods,
      params,
    }),
  },
  { weight: 2, arbitrary: fc.record({ jsonrpc: fc.constant('2.0'), method: methods, params }) },
  fc.constantFrom<object>(
    { jsonrpc: '2.0', id: 1, result: {} },
    { jsonrpc: '2.0', id: 1, error: { code: 1, message: 'm' } },
    { id: 1 },
    { jsonrpc: '2.0' },
  ),
);
/** The text for the SDK, which refuses null for what is optional: ours alone takes it for none. */
const forTheSdk = (text: string): string =>
  JSON.stringify(
    JSON.parse(text, (name, value: unknown) => (value === null && OPTIONAL.has(name) ? undefined : value)),
  );
const OPTIONAL: ReadonlySet<string> = new Set(['params', '_meta', CLIENT, LEVEL, 'progressToken']);
const body = fc.oneof({ weight: 8, arbitrary: message }, fc.array(message, { maxLength: 3 }));
const headers = fc.record({ version: maybe(versions), method: maybe(methods), name: maybe(names) });

/** As ours, in the words of the SDK. */
function asTheSdk(ours: Inbound): string {
  if (ours.kind === 'refused') return `refused ${ours.status} ${ours.error.code}`;
  return ours.kind.startsWith('modern') ? 'modern' : 'legacy';
}

const inbound = (given: {
  readonly version: string | undefined;
  readonly method: string | undefined;
  readonly name: string | undefined;
}): InboundHeaders => ({
  version: given.version ?? null,
  method: given.method ?? null,
  name: given.name ?? null,
  session: 'abc',
  accept: null,
});

describe('what a POST is', () => {
  it('is what the SDK takes it for', () => {
    fc.assert(
      fc.property(body, headers, (value, given) => {
        const text = JSON.stringify(value);
        const ours = classify(text, inbound(given));
        const theirs = classifyInboundRequest({
          httpMethod: 'POST',
          body: JSON.parse(forTheSdk(text)) as unknown,
          ...(given.version !== undefined && { protocolVersionHeader: given.version }),
          ...(given.method !== undefined && { mcpMethodHeader: given.method }),
          ...(given.name !== undefined && { mcpNameHeader: given.name }),
        });
        if (theirs.kind === 'reject') {
          expect(asTheSdk(ours)).toBe(`refused ${theirs.httpStatus} ${theirs.code}`);
          return;
        }
        // The rungs below come after the SDK's classification: the version that is not served, missing headers,
        // unknown methods.
        if (theirs.kind === 'modern')
          expect(asTheSdk(ours)).toMatch(/^modern$|^refused 400 -3202[02]$|^refused 404 -32601$/);
        // Ours alone: in the modern era no responses and no batches, and no initialize in one.
        else
          expect(asTheSdk(ours)).toMatch(
            given.version === undefined ? /^legacy$|^refused 400 -32600$/ : /^legacy$|^refused 400 -32(?:600|602|020)$/,
          );
      }),
      { numRuns: deep ? 1_000_000 : 600 },
    );
  });

  it('is answered as the SDK answers it, where it is refused', { timeout: 600_000 }, async () => {
    const handler = createMcpHandler(() => new McpServer({ name: 'bare', version: '1' }));
    const request = fc.record({
      jsonrpc: fc.constant('2.0'),
      id: fc.constantFrom<string | number>(7, 'a', 0),
      method: methods,
      params,
    });
    await fc.assert(
      fc.asyncProperty(request, headers, async (value, given) => {
        const text = JSON.stringify(value);
        const ours = classify(text, inbound(given));
        // What no HTTP client sends: header values beyond Latin-1 or with line ends are not among the names.
        const response = await handler.fetch(
          new Request('http://127.0.0.1/mcp', {
            method: 'POST',
            headers: {
              'content-type': 'application/json',
              accept: 'application/json, text/event-stream',
              ...(given.version !== undefined && { 'mcp-protocol-version': given.version }),
              ...(given.method !== undefined && { 'mcp-method': given.method }),
              ...(given.name !== undefined && { 'mcp-name': given.name }),
            },
            body: forTheSdk(text),
          }),
        );
        const answer = await response.text();
        if (ours.kind === 'refused') {
          const theirs = JSON.parse(answer) as { id: unknown; error: { code: number; data?: unknown } };
          expect([response.status, theirs.error.code, theirs.id]).toEqual([
            ours.status,
            ours.error.code,
            JSON.parse(ours.idText),
          ]);
          if (ours.error.code === -32022) expect(theirs.error.data).toEqual(ours.error.data);
        } else if (ours.kind === 'modern') expect([200, 400, 404]).toContain(response.status);
        if (ours.kind === 'modern') expect(answer).not.toMatch(/"code":-3202[02]|Invalid _meta/);
      }),
      { numRuns: deep ? 30_000 : 400 },
    );
    await handler.close();
  });
});
